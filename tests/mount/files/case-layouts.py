#!/usr/bin/python3
"""Layouts of folders that people have: what each is read as. The contents of a file are its path, unless a table says
otherwise; so a field shows which file it was made from. For each layout: its files, tables and texts with their
contents, and for each dataset the samples, fields, classes with the keys of their samples, and values by key. Nothing
else may be a dataset."""

import itertools
import json
import re
import subprocess
import sys

import numpy as np

from lib import EPOCHFS, PRIVATE, SOURCE, contains, equal, path, run, start, stop, write

LAYOUTS = {}


def layout(name, files, wanted=None, tables=None, **about):
    """wanted: {dataset: (samples, fields, {class: keys} or None, {key: {field: value}})}, the last two may be
    missing; aside, note, refuse: words of `info`; recipe: (epochfs.json, what it gives);
    prints: the recipe that `info --layout` prints gives the same."""
    LAYOUTS[name] = (files, wanted, tables or {}, about)


def expand(pattern):
    """a/{b,c}/d: as a shell does."""
    parts = [part.split(",") if i % 2 else [part] for i, part in enumerate(re.split(r"\{(.*?)\}", pattern))]
    return ["".join(p) for p in itertools.product(*parts)]


def rows(*lines, end="\n"):
    return end.join(lines) + end


# ---- splits ----

layout("cyclegan-numbered", "trainA/{1,2,3}.jpg trainB/{1,2,3}.jpg testA/{1,2}.jpg testB/{1,2}.jpg",
       {"trainA": (3, "jpg,b.jpg", None, {"1": {"b.jpg": "trainB/1.jpg"}}),
        "testA": (2, "jpg,b.jpg", None, {"1": {"b.jpg": "testB/1.jpg"}})}, note="trainB testB")

layout("cyclegan", "trainA/n02381460_{1001,1002,1003}.jpg trainB/n02391049_{1000,1002}.jpg "
       "testA/n02381460_{1000,1120}.jpg testB/n02391049_{100,80}.jpg",
       {"trainA": (3, "jpg"), "trainB": (2, "jpg"), "testA": (2, "jpg"), "testB": (2, "jpg")})

layout("market1501", "bounding_box_train/{0002_c1s1_000451_03,0002_c3s2_001051_01,0007_c2s3_070952_01}.jpg "
       "bounding_box_test/{-1_c1s1_000401_03,0000_c1s1_000151_01}.jpg query/{0001_c1s1_001051_00,0003_c6s1_1_00}.jpg "
       "gt_query/{0001_c1s1_001051_00_good,0001_c1s1_001051_00_junk}.mat readme.txt",
       {"bounding_box_train": (3, "jpg"), "bounding_box_test": (2, "jpg"), "query": (2, "jpg")},
       recipe=({"train": {"pictures": "bounding_box_train/{label}_c{camera}s{rest}.jpg"},
                "query": {"pictures": "query/{label}_c{camera}s{rest}.jpg"}},
               {"train": (3, "jpg", {"0002": "0002_c1s1_000451_03, 0002_c3s2_001051_01", "0007": "0007_c2s3_070952_01"},
                          {"0002_c3s2_001051_01": {"camera": 3, "rest": "2_001051_01"}}),
                "query": (2, "jpg", None, {"0003_c6s1_1_00": {"camera": 6, "label": 2}})}),
       classes=["0001", "0002", "0003", "0007"])

layout("cars", "cars_train/{00001,00002}.jpg cars_test/{00001,00002,00003}.jpg cars_annos.mat",
       {"cars_train": (2, "jpg"), "cars_test": (3, "jpg")}, aside="cars_annos.mat")

layout("svhn", "train/{1,2,3}.png test/{1,2}.png extra/{1,2,3,4}.png {train,test,extra}/digitStruct.mat",
       {"train": (3, "png"), "test": (2, "png"), "extra": (4, "png")})

layout("dogs-vs-cats", "train/{cat,dog}.{0,1}.jpg test1/{1,2,3}.jpg", {"train": (4, "jpg"), "test1": (3, "jpg")},
       {"sampleSubmission.csv": rows("id,label", "1,0", "2,0", "3,0")}, aside="sampleSubmission.csv",
       recipe=({"train": {"pictures": "train/{label}.{n}.jpg"}, "test": {"pictures": "test1/{n}.jpg"}},
               {"train": (4, "jpg", {"cat": "cat.0, cat.1", "dog": "dog.0, dog.1"}, {"dog.1": {"n": 1}}),
                "test": (3, "jpg", None, {"3": {"n": 3}})}))

layout("fruits-360", "{Training,Test}/{Apple Braeburn,Kiwi}/{0_100,r_3_100}.jpg papers/fruits.pdf readme.md LICENSE "
       "test-multiple_fruits/{apple_apricot,kiwi1}.jpg",
       {"Training": (4, "jpg", {c: f"{c}/0_100, {c}/r_3_100" for c in ("Apple Braeburn", "Kiwi")}),
        "Test": (4, "jpg", {c: f"{c}/0_100, {c}/r_3_100" for c in ("Apple Braeburn", "Kiwi")}),
        "test-multiple_fruits": (2, "jpg")})

# ---- one folder, classes, what lies deeper ----

layout("deeper-and-foreign", "train/cat/images/{c1,c2}.jpg train/dog/images/{d1,d2}.jpg val/cat/images/c3.jpg "
       "val/dog/images/d3.jpg train/cat/features.npz val/boxes.npz model.safetensors",
       {"train": (4, "jpg", {"cat": "c1, c2", "dog": "d1, d2"}), "val": (2, "jpg", {"cat": "c3", "dog": "d3"})},
       aside="features.npz boxes.npz model.safetensors")

layout("office-home", "{Art,Clipart,Real World}/{Alarm_Clock,Bike}/{00001,00002}.jpg imagelist.txt",
       {d: (4, "jpg", {c: f"{c}/00001, {c}/00002" for c in ("Alarm_Clock", "Bike")})
        for d in ("Art", "Clipart", "Real World")})

layout("plant-village", "{color,grayscale,segmented}/{Apple___Apple_scab,Apple___healthy}/{0a5e___FREC 1,8f3c___RS 2}.JPG",
       {d: (4, "jpg", {c: f"{c}/0a5e___FREC 1, {c}/8f3c___RS 2" for c in ("Apple___Apple_scab", "Apple___healthy")})
        for d in ("color", "grayscale", "segmented")})

layout("sun397", "a/{abbey,airport_terminal}/{sun_1,sun_2}.jpg b/bakery/shop/{sun_3,sun_4}.jpg b/balcony/exterior/sun_5.jpg",
       tables={"ClassName.txt": rows("/a/abbey", "/a/airport_terminal", "/b/bakery/shop", "/b/balcony/exterior")},
       refuse="epochfs.json letters abbey")

layout("malaria", "cell_images{,/cell_images}/{Parasitized/C100P61,Uninfected/C1_thinF}_cell_{162,163}.png "
       "cell_images/Parasitized/Thumbs.db",
       {d: (4, "png", {"Parasitized": "C100P61_cell_162, C100P61_cell_163",
                       "Uninfected": "C1_thinF_cell_162, C1_thinF_cell_163"})
        for d in ("cell_images", "cell_images/cell_images")})

layout("wider-face", "WIDER_{train,val,test}/images/{0--Parade/0_Parade_marchingband_1,1--Handshaking/1_Handshaking_1}_{1,2}.jpg "
       "wider_face_split/{wider_face_train,wider_face_val}.mat",
       {f"WIDER_{s}/images": (4, "jpg", {"0--Parade": "0_Parade_marchingband_1_1, 0_Parade_marchingband_1_2",
                                         "1--Handshaking": "1_Handshaking_1_1, 1_Handshaking_1_2"})
        for s in ("train", "val", "test")},
       {"wider_face_split/wider_face_train_bbx_gt.txt": rows(
           "0--Parade/0_Parade_marchingband_1_1.jpg", "1", "449 330 122 149 0 0 0 0 0 0 ",
           "1--Handshaking/1_Handshaking_1_1.jpg", "2", "78 221 7 8 2 0 0 0 0 0 ", "78 238 14 17 2 0 0 0 0 0 ")},
       aside="wider_face_train_bbx_gt.txt")

layout("caltech101", "101_ObjectCategories/{BACKGROUND_Google,accordion}/image_{0001,0002}.jpg "
       "Annotations/accordion/annotation_{0001,0002}.mat show_annotation.m",
       {"101_ObjectCategories": (4, "jpg", {c: f"{c}/image_0001, {c}/image_0002"
                                            for c in ("BACKGROUND_Google", "accordion")})}, aside="mat")

layout("caltech256", "256_ObjectCategories/{001.ak47/001,198.spider/198}_{0001,0002}.jpg 256_ObjectCategories/198.spider/RENAME2",
       {"256_ObjectCategories": (4, "jpg", {"001.ak47": "001_0001, 001_0002", "198.spider": "198_0001, 198_0002"})})

layout("stanford-dogs", "Images/{n02085620-Chihuahua/n02085620,n02085782-Japanese_spaniel/n02085782}_{10074,1321}.jpg "
       "Annotation/{n02085620-Chihuahua/n02085620,n02085782-Japanese_spaniel/n02085782}_{10074,1321} {train,test}_list.mat",
       {"Images": (4, "jpg", {"n02085620-Chihuahua": "n02085620_10074, n02085620_1321",
                              "n02085782-Japanese_spaniel": "n02085782_10074, n02085782_1321"})}, note="Annotation is ignored")

layout("stanford-dogs-deeper", "images/Images/{n1-Chihuahua/n1,n2-Spaniel/n2}_{10,13}.jpg "
       "annotations/Annotation/{n1-Chihuahua/n1,n2-Spaniel/n2}_{10,13}",
       {"images/Images": (4, "jpg", {"n1-Chihuahua": "n1_10, n1_13", "n2-Spaniel": "n2_10, n2_13"})})

layout("mask-nomask", "{mask,no_mask}/{1,2,3}.jpg",
       {"all": (6, "jpg", {c: f"{c}/1, {c}/2, {c}/3" for c in ("mask", "no_mask")})}, note="equal")

layout("face-masks", "data/{with,without}_mask/{1,2}.jpg",
       {"data": (4, "jpg", {c: f"{c}/1, {c}/2" for c in ("with_mask", "without_mask")})})

layout("lfw", "{Aaron_Eckhart/Aaron_Eckhart,Abba_Eban/Abba_Eban,Zico/Zico}_0001.jpg Zico/Zico_0002.jpg",
       {"all": (4, "jpg", {"Aaron_Eckhart": "Aaron_Eckhart_0001", "Abba_Eban": "Abba_Eban_0001",
                           "Zico": "Zico_0001, Zico_0002"})},
       {"pairs.txt": rows("2\t1", "Zico\t1\t2", "Aaron_Eckhart\t1\tZico\t2"),
        "people.csv": rows("name,images", "Aaron_Eckhart,1", "Zico,2", end="\r\n")}, aside="pairs.txt people.csv")

layout("utkface", "UTKFace/{1_0_0_20161219140623097,26_1_2_20170116172713}.jpg.chip.jpg", {"all": (2, "jpg")})

layout("omniglot", "images_background/{Greek,Latin}/{character01,character02}/{0709_01,0709_02}.png",
       {f"images_background/{d}": (4, "png", {c: f"{c}/0709_01, {c}/0709_02" for c in ("character01", "character02")})
        for d in ("Greek", "Latin")})

layout("omniglot-both", "images_background/{Greek,Latin}/{character01,character02}/0709_01.png "
       "images_evaluation/{Angelic,Manipuri}/{character01,character02}/0965_01.png",
       {d: (2, "png", {c: f"{c}/{k}" for c in ("character01", "character02")})
        for d, k in (("images_background/Greek", "0709_01"), ("images_background/Latin", "0709_01"),
                     ("images_evaluation/Angelic", "0965_01"), ("images_evaluation/Manipuri", "0965_01"))})

layout("omniglot-strokes", "images_background/{Greek,Latin}/{character01,character02}/0709_01.png "
       "images_evaluation/{Angelic,Manipuri}/{character01,character02}/0965_01.png "
       "strokes_background/{Greek,Latin}/{character01,character02}/0709_01.txt",
       {d: (2, f, {c: f"{c}/{k}" for c in ("character01", "character02")})
        for d, k, f in (("images_background/Greek", "0709_01", "png,txt"), ("images_background/Latin", "0709_01", "png,txt"),
                        ("images_evaluation/Angelic", "0965_01", "png"), ("images_evaluation/Manipuri", "0965_01", "png"))})

layout("alphabet", "{A,B,C}/{1,2}.jpg", {"all": (6, "jpg", {c: f"{c}/1, {c}/2" for c in "ABC"})}, note="equal")

layout("risk-levels", "{low,medium,high}/{1,2}.jpg", refuse="epochfs.json low medium high")

layout("other-masks", "images/{1,2}.png masks/{1,2,3}.png", refuse="epochfs.json images masks")

layout("places365", "{train,val}/{airfield/airfield,zoo/zoo}_{00000001,00000002}.jpg",
       {s: (4, "jpg", {c: f"{c}_00000001, {c}_00000002" for c in ("airfield", "zoo")}) for s in ("train", "val")},
       {"categories_places365.txt": rows("/a/airfield 0", "/z/zoo 1")}, aside="categories_places365.txt")

# ---- parts ----

layout("ffhq-thousands", "00000/{00000,00001,00999}.png 01000/{01000,01999}.png {00000,01000}/LICENSE.txt LICENSE.txt",
       {"all": (5, "png")}, note="parts numbers that run on")

layout("ham10000", "HAM10000_images_part_1/ISIC_{0024306,0024307}.jpg HAM10000_images_part_2/ISIC_{0029306,0029307}.jpg",
       {"all": (4, "jpg,lesion_id,dx_type,localization", None,
                {"ISIC_0024307": {"dx": "bkl", "age": 80.0, "sex": "male"}, "ISIC_0029306": {"dx": "df"}})},
       {"HAM10000_metadata.csv": rows("lesion_id,image_id,dx,dx_type,age,sex,localization",
                                      "HAM_0000118,ISIC_0024307,bkl,histo,80.0,male,scalp",
                                      "HAM_0002730,ISIC_0029307,bkl,histo,,female,unknown",
                                      "HAM_0000118,ISIC_0024306,nv,consensus,75.0,male,scalp",
                                      "HAM_0001466,ISIC_0029306,df,histo,75.5,female,ear", end="\r\n")})

NIH = ("Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
       "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],")
layout("chestxray14", "images_001/images/0000000{1_000,1_001,2_000}.png images_002/images/00000003_000.png FAQ.pdf",
       {"train_val_list": (3, "png,Patient Age,View Position", None,
                           {"00000001_001": {"Finding Labels": "Cardiomegaly|Emphysema", "Follow-up #": 1}}),
        "test_list": (1, "png", None, {"00000003_000": {"Finding Labels": "Hernia", "Patient ID": 3}})},
       {"Data_Entry_2017.csv": rows(NIH, "00000001_000.png,Cardiomegaly,0,1,058Y,M,PA,2682,2749,0.143,0.143,",
                                    "00000001_001.png,Cardiomegaly|Emphysema,1,1,058Y,M,PA,2894,2729,0.143,0.143,",
                                    "00000002_000.png,No Finding,0,2,081Y,M,PA,2500,2048,0.171,0.171,",
                                    "00000003_000.png,Hernia,0,3,081Y,F,PA,2582,2991,0.143,0.143,"),
        "BBox_List_2017.csv": rows("Image Index,Finding Label,Bbox [x,y,w,h],,,",
                                   "00000003_000.png,Hernia,225.084745762712,547.01,86.7796610169491,79.18,,,"),
        "train_val_list.txt": "00000001_000.png\n00000001_001.png\n00000002_000.png",
        "test_list.txt": "00000003_000.png"}, aside="BBox_List_2017.csv")

# ---- pairs ----

layout("mirrored-masks", "images/{train,val}/{1,2}.jpg masks/{train,val}/{1,2}.png",
       {s: (2, "jpg,masks.png", None, {"2": {"masks.png": f"masks/{s}/2.png"}}) for s in ("train", "val")})

layout("masks-in-splits", "{train,val}/images/{1,2}.jpg {train,val}/masks/{1,2}.png",
       {s: (2, "jpg,masks.png", None, {"2": {"masks.png": f"{s}/masks/2.png"}}) for s in ("train", "val")})

layout("camvid", "{train/0001TP_006690,train/0001TP_006720,val/0016E5_07959,test/Seq05VD_f00000}.png "
       "{trainannot/0001TP_006690,trainannot/0001TP_006720,valannot/0016E5_07959,testannot/Seq05VD_f00000}.png",
       {"train": (2, "png,annot.png", None, {"0001TP_006720": {"annot.png": "trainannot/0001TP_006720.png"}}),
        "val": (1, "png,annot.png"), "test": (1, "png,annot.png")},
       {"train.txt": rows(*(f"/SegNet/CamVid/train/{n}.png /SegNet/CamVid/trainannot/{n}.png"
                            for n in ("0001TP_006690", "0001TP_006720")))},
       recipe=({"{split}": {"pictures": "{split}/*.png", "with": {"mask.png": "{split}annot/{stem}.png"}}},
               {"train": (2, "png,mask.png"), "val": (1, "png,mask.png"), "test": (1, "png,mask.png")}))

layout("ade20k", "ADE/images/training/ADE_train_0000000{1,2,3,4}.jpg ADE/images/validation/ADE_val_0000000{1,2}.jpg "
       "ADE/annotations/training/ADE_train_0000000{1,2,3,4}.png ADE/annotations/validation/ADE_val_0000000{1,2}.png",
       {"ADE/training": (4, "jpg,annotations.png", {"airport_terminal": "ADE_train_00000001, ADE_train_00000002",
                                                    "bathroom": "ADE_train_00000003, ADE_train_00000004"},
                         {"ADE_train_00000003": {"annotations.png": "ADE/annotations/training/ADE_train_00000003.png"}}),
        "ADE/validation": (2, "jpg,annotations.png", {"airport_terminal": "ADE_val_00000002", "bathroom": "ADE_val_00000001"})},
       {"ADE/sceneCategories.txt": rows("ADE_train_00000001 airport_terminal", "ADE_train_00000002 airport_terminal",
                                        "ADE_train_00000003 bathroom", "ADE_train_00000004 bathroom",
                                        "ADE_val_00000001 bathroom", "ADE_val_00000002 airport_terminal"),
        "ADE/objectInfo150.txt": rows("Idx\tRatio\tTrain\tVal\tStuff\tName", "1\t0.1576\t11664\t1172\t1\twall",
                                      "2\t0.1072\t6046\t612\t1\tbuilding, edifice")}, aside="objectInfo150.txt")

layout("div2k", "DIV2K_train_HR/{0001,0002}.png DIV2K_train_LR_bicubic/X2/{0001,0002}x2.png DIV2K_valid_HR/0801.png "
       "DIV2K_valid_LR_bicubic/X2/0801x2.png",
       {"DIV2K_train_HR": (2, "png"), "DIV2K_train_LR_bicubic": (2, "png"), "DIV2K_valid_HR": (1, "png"),
        "DIV2K_valid_LR_bicubic": (1, "png")},
       recipe=({"{split}": {"pictures": "DIV2K_{split}_LR_bicubic/X2/{n}x2.png", "with": {"hr.png": "DIV2K_{split}_HR/{n}.png"}}},
               {"train": (2, "png,hr.png", None, {"0002x2": {"n": 2, "hr.png": "DIV2K_train_HR/0002.png"}}),
                "valid": (1, "png,hr.png", None, {"0801x2": {"n": 801}})}))

layout("pix2pix-ab", "{A,B}/{train,val}/{1,2}.jpg",
       {s: (2, "jpg,b.jpg", None, {"1": {"jpg": f"A/{s}/1.jpg", "b.jpg": f"B/{s}/1.jpg"}}) for s in ("train", "val")})

layout("gopro", "train/{GOPR0372_07_00,GOPR0374_11_01}/{blur,sharp}/{000047,000048}.png test/GOPR0384_11_00/{blur,sharp}/000001.png",
       {"train": (4, "png,sharp.png", None, {"GOPR0374_11_01/blur/000048": {
           "png": "train/GOPR0374_11_01/blur/000048.png", "sharp.png": "train/GOPR0374_11_01/sharp/000048.png"}}),
        "test": (1, "png,sharp.png")})

layout("gopro-large", "train/{GOPR0372_07_00,GOPR0374_11_01}/{blur,blur_gamma,sharp}/000047.png",
       {"train": (2, "png,sharp.png", None, {"GOPR0374_11_01/blur/000047": {"png": "train/GOPR0374_11_01/blur/000047.png"}})},
       note="blur_gamma")

layout("mvtec", "bottle/train/good/{000,001}.png bottle/test/{good,broken_large}/{000,001}.png "
       "bottle/ground_truth/broken_large/{000,001}_mask.png bottle/{license,readme}.txt",
       {"bottle/train": (2, "png"),
        "bottle/test": (4, "png,ground_truth.png", {c: f"{c}/000, {c}/001" for c in ("good", "broken_large")},
                        {"broken_large/001": {"ground_truth.png": "bottle/ground_truth/broken_large/001_mask.png"}})})

layout("mvtec-two", "{bottle,cable}/train/good/{000,001}.png {bottle,cable}/test/{good,bent,cut}/000.png "
       "{bottle,cable}/ground_truth/{bent,cut}/000_mask.png",
       {d: w for n in ("bottle", "cable") for d, w in (
           (f"{n}/train", (2, "png")),
           (f"{n}/test", (3, "png,ground_truth.png", {c: f"{c}/000" for c in ("good", "bent", "cut")},
                          {"cut/000": {"ground_truth.png": f"{n}/ground_truth/cut/000_mask.png"}})))})

layout("splits-and-masks", "{train,val}/{1,2}.jpg masks/{train,val}/{1,2}.png",
       {s: (2, "jpg,masks.png", None, {"2": {"masks.png": f"masks/{s}/2.png"}}) for s in ("train", "val")})

layout("camvid-list", "images/{a,b,c}.png labels/{a,b,c}_P.png", {"valid": (1, "png,labels.png")}, {"valid.txt": rows("c.png")},
       note="2 pictures are in no dataset")

layout("drive", "training/{images/21_training.tif,images/22_training.tif,1st_manual/21_manual1.gif,1st_manual/22_manual1.gif} "
       "training/mask/{21,22}_training_mask.gif test/{images/01_test.tif,1st_manual/01_manual1.gif,mask/01_test_mask.gif}",
       {"training": (2, "tif,mask.gif"), "test": (1, "tif,mask.gif")}, aside="gif")

layout("supervisely", "{ds0,ds1}/img/{IMG_0748,IMG_1836}.jpeg {ds0,ds1}/ann/{IMG_0748,IMG_1836}.jpeg.json meta.json",
       {"all": (4, "jpeg,json", None, {f"{d}/img/IMG_1836": {"json": f"{d}/ann/IMG_1836.jpeg.json"} for d in ("ds0", "ds1")})})

layout("supervisely-mixed", "img/{a.jpg,b.png,d.c.jpg} ann/{a.jpg,b.png,d.c.jpg}.json meta.json obj_class_to_machine_color.json",
       {"all": (3, "jpg,png,json", None, {"b": {"json": "ann/b.png.json"}, "d.c": {"json": "ann/d.c.jpg.json"}})})

layout("isic", "ISBI2016_ISIC_Part1_{Training,Test}_Data/ISIC_{0000000,0000001}.jpg "
       "ISBI2016_ISIC_Part1_{Training,Test}_GroundTruth/ISIC_{0000000,0000001}_Segmentation.png",
       {f"ISBI2016_ISIC_Part1_{s}_Data": (2, "jpg,groundtruth.png", None, {"ISIC_0000001": {
           "groundtruth.png": f"ISBI2016_ISIC_Part1_{s}_GroundTruth/ISIC_0000001_Segmentation.png"}})
        for s in ("Training", "Test")})

# ---- tables and lists ----

layout("cassava", "train_images/{1000015157,1000201771,100042118,6103}.jpg test_images/2216849948.jpg",
       {"train_images": (4, "jpg", {0: "1000015157", 3: "1000201771, 6103", 1: "100042118"}), "test_images": (1, "jpg")},
       {"train.csv": rows("image_id,label", "1000015157.jpg,0", "1000201771.jpg,3", "100042118.jpg,1", "6103.jpg,3"),
        "sample_submission.csv": rows("image_id,label", "2216849948.jpg,4"),
        "label_num_to_disease_map.json": '{"0": "Cassava Bacterial Blight (CBB)"}'}, aside="sample_submission.csv")

EUROSAT = ["AnnualCrop/AnnualCrop_1", "AnnualCrop/AnnualCrop_2", "Forest/Forest_1", "Forest/Forest_2", "River/River_7"]
EUROSAT_CLASSES = ["AnnualCrop", "Forest", "River"]


def eurosat(*places):
    return rows(",Filename,Label,ClassName", *(
        f"{i},{EUROSAT[k]}.jpg,{EUROSAT_CLASSES.index(EUROSAT[k].split('/')[0])},{EUROSAT[k].split('/')[0]}"
        for i, k in enumerate(places)))


for name, above in (("eurosat-csv", ""), ("eurosat-inside", "EuroSAT/")):
    layout(name, f"EuroSAT/{{{','.join(EUROSAT)}}}.jpg {above}label_map.json",
           {f"{above}train": (3, "jpg,Label,ClassName", {"AnnualCrop": "AnnualCrop_2", "Forest": "Forest_1", "River": "River_7"},
                              {"River_7": {"Label": 2, "ClassName": "River"}}),
            f"{above}validation": (1, "jpg,Label", {"AnnualCrop": "AnnualCrop_1"}),
            f"{above}test": (1, "jpg,Label", {"Forest": "Forest_2"})},
           {f"{above}train.csv": eurosat(4, 1, 2), f"{above}validation.csv": eurosat(0), f"{above}test.csv": eurosat(3)},
           classes=EUROSAT_CLASSES)

FGVC = {"train": ("1025794", "1340192", "0056978", "0698580"), "test": ("1514522", "0747566", "0447566", "1000000")}
layout("fgvc-aircraft", "data/images/{1025794,1340192,0056978,0698580,1514522,0747566,0447566,1000000}.jpg evaluation.m",
       {f"data/images_{k}_{s}": (len(n), "jpg", dict(zip(c, (", ".join(n[:len(n) // 2]), ", ".join(n[len(n) // 2:])))))
        for k, c in (("variant", ("707-320", "727-200")), ("family", ("Boeing 707", "Boeing 727")))
        for s, n in FGVC.items()} | {f"data/images_{s}": (len(n), "jpg") for s, n in FGVC.items()},
       {f"data/images_{k}_{s}.txt": rows(*(f"{p} {c[i >= len(n) // 2]}" for i, p in enumerate(n)))
        for k, c in (("variant", ("707-320", "727-200")), ("family", ("Boeing 707", "Boeing 727")))
        for s, n in FGVC.items()} | {f"data/images_{s}.txt": rows(*n) for s, n in FGVC.items()} |
       {"data/images_box.txt": rows(*(f"{p} 3 144 998 431" for n in FGVC.values() for p in n)),
        "data/variants.txt": rows("707-320", "727-200")})

FLICKR = ["1000268201_693b08cb0e", "1001773457_577c3a7d70"]
layout("flickr8k", f"Images/{{{','.join(FLICKR)}}}.jpg", {"all": (2, "jpg")},
       {"captions.txt": rows("image,caption", *(f'{n}.jpg,"A child , in a pink dress {k} ."' for n in FLICKR for k in range(5)))},
       aside="captions.txt several")

layout("flickr8k-text", f"Flicker8k_Dataset/{{{','.join(FLICKR)},102351840_323e3de834}}.jpg",
       {"Flickr_8k.trainImages": (2, "jpg"), "Flickr_8k.devImages": (1, "jpg")},
       {"Flickr8k_text/Flickr_8k.trainImages.txt": rows(*(f"{n}.jpg" for n in FLICKR)),
        "Flickr8k_text/Flickr_8k.devImages.txt": rows("102351840_323e3de834.jpg"),
        "Flickr8k_text/Flickr8k.token.txt": rows(*(f"{n}.jpg#{k}\tA child {k} ." for n in FLICKR for k in range(5)))},
       aside="Flickr8k.token.txt")

layout("paths-of-elsewhere", "set/images/{a,b,c}.jpg", {"set/train": (2, "jpg"), "set/test": (1, "jpg")},
       {"set/train.txt": rows("/home/me/x/images/a.jpg", "/home/me/x/images/b.jpg"), "set/test.txt": rows("/home/me/x/images/c.jpg")})

layout("windows", "train/{a,b}.jpg", {"train": (2, "jpg", {0: "b", 3: "a"})},
       {"labels.csv": rows("Image Path,label", "train\\a.jpg,3", "train\\b.jpg,0", end="\r\n")})

layout("open-images", "train/{000002b66c9c498e,000002b97e5471a0}.jpg validation/0001eeaf4aed83f9.jpg",
       {"train": (2, "jpg"), "validation": (1, "jpg")},
       {"train-annotations-bbox.csv": rows("ImageID,Source,LabelName,Confidence,XMin,XMax", *(
           f"{n},xclick,/m/01g317,1,0.0{k},0.5" for n in ("000002b66c9c498e", "000002b97e5471a0") for k in (1, 2)))},
       aside="train-annotations-bbox.csv several")

layout("open-images-fiftyone", "train/data/{a,b}.jpg validation/data/c.jpg", {"train": (2, "jpg"), "validation": (1, "jpg")},
       {f"{s}/metadata/classes.csv": rows("/m/011k07,Tortoise", "/m/011q46kg,Container") for s in ("train", "validation")},
       aside="classes.csv", note="no row names a picture epochfs.json")

layout("scans", "set/images/{a,b}.png set/masks/{a,b}.png set/scans/{a,b}.bin", {"set": (2, "png,masks.png")}, note="set/scans is ignored")

# Files that another format reads are datasets in the folder of the images, whose dataset has another name.
layout("images-and-rows", "set/images/{a,b}.png set/masks/{a,b}.png set/rows/x.jsonl set/samples/y.jsonl",
       {"set~2": (2, "png,masks.png"), "set/rows/x.jsonl": (2, "json"), "set/samples/y.jsonl": (1, "json")},
       {"set/rows/x.jsonl": rows('{"a": 1}', '{"a": 2}'), "set/samples/y.jsonl": rows('{"a": 3}')}, prints=True)

layout("same-names", "{train,test}/images/{1,2}.png {train,test}/masks/{1,2}.png",
       {"train": (2, "png,masks.png,city", None, {"2": {"city": "Paris"}}),
        "test": (2, "png,masks.png,city", None, {"2": {"city": "Rome"}})},
       {"train.csv": rows("id,city", "1,Bonn", "2,Paris"), "test.csv": rows("id,city", "2,Rome", "1,Oslo", end="\r\n")})

layout("hpa", "train/001838f8-bbca_{red,green,blue,yellow}.png test/00008af0-bad0_{red,green,blue,yellow}.png",
       {"train": (4, "png"), "test": (4, "png")},
       {"train.csv": rows("Id,Target", "001838f8-bbca,16 0"), "sample_submission.csv": rows("Id,Predicted", "00008af0-bad0,0")},
       aside="train.csv sample_submission.csv")

# Tables after the 32nd of a folder are not read, and a note says so.
layout("many-tables", "images/{1,2,3,4,5,6,7,8}.jpg",
       {"all": (8, ",".join(["jpg", *(f"c{n}" for n in range(10, 42))]))},
       {f"t{n}.csv": rows(f"image,c{n}", *(f"{i}.jpg,{i % 3}{i}" for i in range(1, 9))) for n in range(10, 43)},
       note="t42.csv and later files are not read as tables: expected at most 32 of a folder")

# A list that says what the class folders say adds nothing; one that says something else does not take their label away.
DTD = [f"{c}/{c}_000{i}" for c in ("banded", "blotchy") for i in range(4)]
for name, says, more in (("dtd", lambda c: c, ""), ("dtd-numbers", lambda c: str(c == "blotchy" and 1 or 0), ""),
                         ("dtd-other", lambda c: f"very {c}", ",joint_label")):
    layout(name, f"images/{{{','.join(DTD)}}}.jpg",
           {split: (4, f"jpg{more}", {c: ", ".join(p.split("/")[1] for p in DTD[first::2] if p.startswith(c)) for c in ("banded", "blotchy")})
            for first, split in enumerate(("train1", "val1"))},
           {"labels/joint.txt": rows(*(f"{p}.jpg {says(p.split('/')[0])}" for p in DTD)),
            **{f"labels/{split}.txt": rows(*(f"{p}.jpg" for p in DTD[first::2])) for first, split in enumerate(("train1", "val1"))}})

# ---- annotations ----

VOC = ("<annotation>\n\t<folder/>\n\t<filename>{}</filename>\n\t<size><width>416</width><height>416</height><depth>3</depth></size>\n"
       "\t<object>\n\t\t<name>{}</name>\n\t\t<pose>Unspecified</pose>\n\t\t<truncated>0</truncated>\n\t\t<difficult>0</difficult>\n"
       "\t\t<bndbox>\n\t\t\t<xmin>79</xmin>\n\t\t\t<xmax>152</xmax>\n\t\t\t<ymin>105</ymin>\n\t\t\t<ymax>185.5</ymax>\n\t\t</bndbox>\n"
       "\t</object>\n</annotation>\n")
ROBOFLOW = {"train": ["IMG_2277_jpeg.jpg.rf.86c72d6192da", "a-2_jpg.rf.00ff"], "valid": ["IMG_2277_jpeg.jpg.rf.0c0ffee"]}
VOC_BOX = {"boxes": [[79, 105, 152, 185.5]], "difficult": [0]}

layout("voc-roboflow", " ".join(f"{s}/{n}.jpg" for s in ROBOFLOW for n in ROBOFLOW[s]) + " README.roboflow.txt README.dataset.txt",
       {s: (len(n), "jpg,xml,boxes,box_label", None, {n[0]: VOC_BOX | {"jpg": f"{s}/{n[0]}.jpg"}}) for s, n in ROBOFLOW.items()},
       {f"{s}/{n}.xml": VOC.format(f"{n}.jpg", "fish") for s in ROBOFLOW for n in ROBOFLOW[s]},
       info={"train": {"classes": ["fish"], "box_format": "xyxy"}})

layout("face-mask-voc", "images/maksssksksss{0,1}.png",
       {"all": (2, "png,xml", None, {"maksssksksss0": VOC_BOX | {"box_label": [0]}, "maksssksksss1": VOC_BOX | {"box_label": [1]}})},
       {f"annotations/maksssksksss{i}.xml": VOC.format(f"{i}.png", c) for i, c in enumerate(("with_mask", "without_mask"))},
       info={"all": {"classes": ["with_mask", "without_mask"]}})

# Two tables with columns of one name, and two labels.
layout("rsna", "train/{a,b,c,d}.png test/e.png",
       {"train": (4, "png,Target,train_class,x", {"lung": "a, b", "none": "c, d"}, {"b": {"Target": 1, "train_class": 4}}), "test": (1, "png")},
       {"classes.csv": rows("id,class", "a,lung", "b,lung", "c,none", "d,none"),
        "train.csv": rows("id,x,Target,class", "a,1,1,3", "b,2,1,4", "c,3,0,5", "d,4,0,6")},
       note="class of a later table label=FIELD")

# Several labels in a value, where one table or both have them; a row whose picture is missing.
layout("fsd-pictures", "x_dev/{a,b,c}.png x_eval/{d,e}.png",
       {"x_dev": (3, "png,labels", None, {"a": {"labels": "cat,dog"}}), "x_eval": (2, "png,labels")},
       {"dev.csv": rows("id,labels", 'a,"cat,dog"', "b,cat", "c,dog"), "eval.csv": rows("id,labels", 'd,"dog,cat"', "e,cat", "f,cat")},
       note="labels is no label: 'cat,dog' is several of its values eval.csv: 1 of its rows name no picture")

# Numbers of rows, which some labels are as well; a kind of its own whose name has two others.
layout("pandas", "images/" + "{" + ",".join(map(str, range(20))) + "}.png",
       {"all": (20, "png,label", None, {"13": {"label": 3}})},
       {"labels.csv": rows(",label", *(f"{i},{i % 10}" for i in range(20)))})
layout("crabs", "{a,b,c}.png", {"all": (3, "png,label", None, {"b": {"label": 2}})},
       {"labels.csv": rows("file,label", "a.png,crab", "b.png,king crab", "c.png,king")})

# Boxes of YOLO next to pictures.
layout("yolo-beside", "obj_train_data/{a,b}.jpg",
       {"obj_train_data": (2, "jpg,txt", None, {"b": {"boxes": [[0.5, 0.5, 0.25, 0.25]], "box_label": [1]}})},
       {"obj_train_data/a.txt": "", "obj_train_data/b.txt": "1 0.5 0.5 0.25 0.25", "obj.names": rows("cat", "dog"),
        "train.txt": rows("data/obj_train_data/a.jpg", "data/obj_train_data/b.jpg")},
       info={"obj_train_data": {"class_names": {"0": "cat", "1": "dog"}}})

# Two datasets: fields of one need the names of folders.
layout("kitti-and-yolo", "kitti/training/image_2/{1,2}.png kitti/testing/image_2/3.png yolo/images/{1,2}.jpg",
       {"kitti/training": (2, "png,label_2.txt,calib.txt"), "kitti/testing": (1, "png,calib.txt"), "yolo": (2, "jpg,txt,boxes")},
       {f"kitti/{n}.txt": "P0: 7.2\n" for n in ("training/calib/1", "training/calib/2", "training/label_2/1", "testing/calib/3")} |
       {f"yolo/labels/{n}.txt": "0 0.5 0.5 0.1 0.1\n" for n in (1, 2)})

# Classes of the folders and of the boxes.
layout("indoor67", "Images/{airport_inside/airport_inside_0001,airport_inside/a2,bakery/1}.jpg",
       {"all": (3, "jpg,xml,boxes", {"airport_inside": "airport_inside_0001, a2", "bakery": "1"}, {"1": VOC_BOX | {"box_label": [0]}})},
       {f"Annotations/{n}.xml": VOC.format(f"{n}.jpg", "chair") for n in ("airport_inside/airport_inside_0001", "bakery/1")},
       info={"all": {"classes": ["airport_inside", "bakery"], "box_classes": ["chair"]}})

layout("busi", "BUSI/{benign/benign1,benign/benign2,malignant/malignant1}{,_mask}.png",
       {"BUSI": (6, "png", {"benign": "benign1, benign1_mask, benign2, benign2_mask", "malignant": "malignant1, malignant1_mask"})},
       note="benign1_mask.png targets 3 of 6")

YOLO = {"train": ["IMG_2277_jpeg.jpg.rf.86c7", "a_jpg.rf.00ff"], "valid": ["b_jpg.rf.0a"], "test": ["c_jpg.rf.0b"]}
layout("yolo-roboflow", " ".join(f"{s}/images/{n}.jpg" for s in YOLO for n in YOLO[s]) + " README.roboflow.txt train/labels.cache",
       {s: (len(n), "jpg,txt,box_label", None, {n[0]: {"boxes": [[0.5, 0.25, 0.125, 0.5], [0.1, 0.2, 0.3, 0.4]],
                                                       "box_label": [1, 0]}}) for s, n in YOLO.items()},
       {f"{s}/labels/{n}.txt": "1 0.5 0.25 0.125 0.5\n0 0.1 0.2 0.3 0.4" for s in YOLO for n in YOLO[s]} |
       {"data.yaml": rows("train: ../train/images", "val: ../valid/images", "test: ../test/images", "", "nc: 2",
                          "names: ['fish', \"star fish\"]", "", "roboflow:", "  license: CC BY 4.0")},
       info={s: {"class_names": {"0": "fish", "1": "star fish"}, "box_format": "cxcywh"} for s in YOLO})


def coco(images, annotations, categories):
    images = [{"id": i, "file_name": n, "width": 4, "height": 4, "license": 1} for i, n in images.items()]
    annotations = [dict(a, id=700 - i) for i, a in enumerate(annotations)]
    return json.dumps({"info": {"year": 2017}, "licenses": [{"id": 1, "name": "x"}], "images": images,
                       "annotations": annotations} | ({"categories": categories} if categories else {}))


def box(image, category, bbox, **more):
    return {"image_id": image, "category_id": category, "bbox": bbox, "area": bbox[2] * bbox[3], "iscrowd": 0,
            "segmentation": [[1, 1, 2, 1, 2, 2]], **more}


VAL = {139: "000000000139.jpg", 285: "000000000285.jpg"}
layout("coco-keypoints-captions", "val2017/000000000{139,285}.jpg",
       {"val2017": (2, "jpg,area,iscrowd,segmentation", None, {
           "000000000139": {"boxes": [[1, 2, 3, 4], [5, 6, 7, 8]], "category_id": [62, 1], "box_label": [1, 0],
                            "caption": ["A room .", "A person ."], "person_keypoints_boxes": [[5, 6, 7, 8]],
                            "keypoints": [[1, 1, 2, 0, 0, 0]], "num_keypoints": [1], "image_id": 139},
           "000000000285": {"boxes": np.zeros((0, 4)), "caption": ["A bear ."], "num_keypoints": []}})},
       {"annotations/captions_val2017.json": coco(VAL, [{"image_id": i, "caption": c} for i, c in (
           (139, "A room ."), (285, "A bear ."), (139, "A person ."))], None),
        "annotations/instances_val2017.json": coco(VAL, [box(139, 62, [1, 2, 3, 4]), box(139, 1, [5, 6, 7, 8])],
                                                   [{"id": 62, "name": "chair"}, {"id": 1, "name": "person"}]),
        "annotations/person_keypoints_val2017.json": coco(
            VAL, [box(139, 1, [5, 6, 7, 8], keypoints=[1, 1, 2, 0, 0, 0], num_keypoints=1)],
            [{"id": 1, "name": "person", "keypoints": ["nose", "left_eye"], "skeleton": [[1, 2]]}])},
       info={"val2017": {"classes": ["person", "chair"], "box_format": "xywh"}})

layout("coco-and-yolo", "images/{1,2}.jpg",
       {"captions_train": (1, "jpg,txt", None, {"1": {"boxes": [[0.5, 0.25, 0.125, 0.5]], "caption": ["A room ."]}}),
        "instances_val": (1, "jpg,txt", None, {"2": {"boxes": [[1, 2, 3, 4]]}})},
       {"annotations/captions_train.json": coco({1: "1.jpg"}, [{"image_id": 1, "caption": "A room ."}], None),
        "annotations/instances_val.json": coco({2: "2.jpg"}, [box(2, 3, [1, 2, 3, 4])], [{"id": 3, "name": "chair"}]),
        "labels/1.txt": "0 0.5 0.25 0.125 0.5\n", "labels/2.txt": "0 0.5 0.25 0.125 0.5\n"},
       info={"captions_train": {"box_format": "cxcywh", "classes": None},
             "instances_val": {"box_format": "xywh", "classes": ["chair"]}}, note="COCO yolo")

layout("coco-roboflow", " ".join(f"{s}/{n}.jpg" for s in ROBOFLOW for n in ROBOFLOW[s]) + " README.roboflow.txt",
       {s: (len(n), "jpg,area,iscrowd", None, {n[0]: {"boxes": [[79, 105, 73, 80.5]], "box_label": [1], "category_id": [1]}})
        for s, n in ROBOFLOW.items()},
       {f"{s}/_annotations.coco.json": coco({i: f"{p}.jpg" for i, p in enumerate(n)}, [box(0, 1, [79, 105, 73, 80.5])],
                                            [{"id": 0, "name": "sea", "supercategory": "none"},
                                             {"id": 1, "name": "fish", "supercategory": "sea"}])
        for s, n in ROBOFLOW.items()}, info={"train": {"classes": ["sea", "fish"]}})


# ---- making, comparing ----

def make(root, files, tables):
    for pattern in re.findall(r"(?:\{.*?\}|[^\s{])+", files):
        for file in expand(pattern):
            write(f"{root}/{file}", file.encode())
    for file, contents in tables.items():
        write(f"{root}/{file}", contents.encode())


def value(batch, field, i):
    a = batch[field]
    if f"{field}_offsets" in batch:
        start, end = batch[f"{field}_offsets"][i:i + 2]
        a = a[start:end]
    return a if f"{field}_offsets" in batch else a[i]


def compare_value(found, want, what):
    if isinstance(want, str) or (isinstance(want, list) and want and isinstance(want[0], str)):
        text = (found.tobytes() if isinstance(found, np.ndarray) else bytes(found)).decode()
        equal(json.loads(text) if isinstance(want, list) else text.rstrip("\n"), want, what)
    else:
        equal(np.asarray(found, float).ravel().tolist(), np.float32(want).astype(float).ravel().tolist()
              if np.asarray(found).dtype == np.float32 else np.asarray(want, float).ravel().tolist(), what)


def compare_dataset(shown, samples, fields, labels=None, values=None, classes=None):
    name = shown["dataset"]
    names = {f["name"] for f in shown["fields"]}
    equal(shown["samples"], samples, f"{name}: samples")
    equal(set(fields.split(",")) - names, set(), f"{name}: fields that are missing")
    has_label = labels is not None or any("label" in v for v in (values or {}).values())
    equal("label" in names, has_label, f"{name}: has a label")
    with np.load(path(name, "batches/batch=all/npz/000000.npz")) as file:
        batch = dict(file)
    keys = [k.decode() for k in batch["key"]]
    equal((len(keys), len(set(keys))), (samples, samples), f"{name}: keys")
    if labels is not None:
        want = {key: c for c, of in labels.items() for key in of.split(", ")}
        found = dict(zip(keys, batch["label"].tolist()))
        if isinstance(next(iter(labels)), str):
            equal(shown["classes"], classes or sorted(labels), f"{name}: classes")
            found = {key: shown["classes"][n] for key, n in found.items()}
        equal(found, want, f"{name}: labels")
    for key, of in (values or {}).items():
        for field, want in of.items():
            compare_value(value(batch, field, keys.index(key)), want, f"{name}: {field} of {key}")


def compare(root, wanted, about, *options):
    arguments = [word for o in options for word in ("-o", o)]
    done = subprocess.run([EPOCHFS, "info", "--json", *arguments, f"{SOURCE}/{root}"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    equal(done.returncode, 0, f"info: {done.stderr}")
    shown = {d["dataset"]: d for d in json.loads(done.stdout)["datasets"]}
    equal(sorted(shown), sorted(wanted), "datasets")
    for name, members in about.get("info", {}).items():
        equal({m: shown[name].get(m) for m in members}, members, f"{name}: info")
    daemon = start(f"{SOURCE}/{root}", *options)
    try:
        for name, want in wanted.items():
            compare_dataset(shown[name], *want, classes=about.get("classes"))
    finally:
        stop(daemon)


def check(name):
    files, wanted, tables, about = LAYOUTS[name]
    make(name, files, tables)
    if wanted is None:
        contains(run("info", f"{SOURCE}/{name}", code=2), *about["refuse"].split())
        return
    compare(name, wanted, about)
    contains(run("info", f"{SOURCE}/{name}"), *(about.get("aside", "") + " " + about.get("note", "")).split())
    if "prints" in about:
        write(f"{PRIVATE}/recipe.json", run("info", "--layout", f"{SOURCE}/{name}").encode())
        compare(name, wanted, about, f"layout={PRIVATE}/recipe.json")
    if "recipe" in about:
        recipe, given = about["recipe"]
        with open(f"{PRIVATE}/recipe.json", "w", encoding="ascii") as f:
            json.dump({"datasets": recipe}, f)
        compare(name, given, {"classes": about.get("classes")}, f"layout={PRIVATE}/recipe.json")


if __name__ == "__main__":
    failed = []
    for name in sys.argv[1:] or LAYOUTS:
        try:
            check(name)
        except (AssertionError, OSError, KeyError, ValueError) as e:
            failed.append(f"{name}: {e!r:.600}")
    if failed:
        raise AssertionError("\n".join(failed))

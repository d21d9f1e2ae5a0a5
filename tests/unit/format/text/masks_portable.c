/* The masks as built without SSE2, under other names. */
#undef __SSE2__
#define text_masks_make          portable_masks_make
#define text_masks_make_anywhere portable_masks_make_anywhere
#define text_masks_find          portable_masks_find
#define text_masks_odd           portable_masks_odd
#define text_masks_long          portable_masks_long
#include "format/text/masks.c"

/* Values of parameters of plans: read and written piece by piece, as the rows of the table say. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "fs/plan/parameters.h"

#define MICRO      1000000
#define MICRO_MOST UINT64_C(1000000000000)

bool plan_is_word(const char *s, size_t len)
{
    if (!len || len >= PLAN_WORD_SIZE || s[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isgraph((unsigned char)s[i]) || strchr(",+/:;&=", s[i]))
            return false;
    return true;
}

bool plan_is_name(const char *s, size_t len)
{
    if (!len || len >= PLAN_WORD_SIZE)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '-')
            return false;
    return true;
}

bool plan_parse_word(const char *s, size_t len, char ret[static PLAN_WORD_SIZE])
{
    if (!plan_is_word(s, len))
        return false;
    memcpy(ret, s, len);
    ret[len] = '\0';
    return true;
}

/* A decimal number with up to 6 digits behind the point, in millionths. */
static size_t parse_micro(const char *s, size_t len, uint64_t *ret)
{
    size_t used = number_parse(s, len, MICRO_MOST, ret);
    uint64_t unit = MICRO;

    if (!used)
        return 0;
    *ret *= MICRO;
    if (used + 1 < len && s[used] == '.' && isdigit((unsigned char)s[used + 1]))
        while (++used < len && isdigit((unsigned char)s[used]) && unit > 1) {
            unit /= 10;
            *ret += unit * (uint64_t)(s[used] - '0');
        }
    return used;
}

/* From the beginning of s. Returns the characters used; 0: that is no such value. */
static size_t parse_piece(const struct plan_piece *piece, const char *s, size_t len, void *ret)
{
    const char *colon = memchr(s, ':', len);
    size_t word_len = colon ? (size_t)(colon - s) : len, used = 0;
    struct plan_place *place = ret;
    uint64_t *number = ret;

    switch (piece->type) {
    case PIECE_NAME:
    case PIECE_WORD:
        return (piece->type == PIECE_WORD || plan_is_name(s, word_len)) &&
                       plan_parse_word(s, word_len, ret)
                   ? word_len
                   : 0;
    case PIECE_PLACE:
        used = number_parse(s, len, piece->most, &place->n);
        place->is_percent = used && used < len && s[used] == '%';
        return place->is_percent && place->n > 100 ? 0 : used + place->is_percent;
    case PIECE_MICRO:
        used = parse_micro(s, len, number);
        break;
    case PIECE_NUMBER:
        used = number_parse(s, len, piece->most, number);
        break;
    case PIECE_NONE:
        break;
    }
    return used && *number >= piece->least && (*number || used == 1) ? used : 0;
}

bool plan_form_parse(const struct plan_piece *piece, struct plan *plan, const char *s, size_t len)
{
    for (; piece->type && (len || !piece->is_optional); piece++) {
        size_t before = piece->before ? strlen(piece->before) : 0, used;

        if (len <= before || (before && memcmp(s, piece->before, before) != 0))
            return false;
        used = parse_piece(piece, s + before, len - before, (char *)plan + piece->at);
        if (!used)
            return false;
        s += before + used;
        len -= before + used;
    }
    return !len;
}

static int print_micro(uint64_t micro, char *buf, size_t capacity)
{
    int digits = 6;
    uint64_t fraction = micro % MICRO;

    for (; fraction && fraction % 10 == 0; digits--)
        fraction /= 10;
    return fraction ? snprintf(buf, capacity, "%llu.%0*llu", (unsigned long long)(micro / MICRO),
                               digits, (unsigned long long)fraction)
                    : snprintf(buf, capacity, "%llu", (unsigned long long)(micro / MICRO));
}

/* The number, or whether there is a word. */
static uint64_t piece_value(const struct plan_piece *piece, const struct plan *plan)
{
    const void *member = (const char *)plan + piece->at;

    return piece->type == PIECE_WORD || piece->type == PIECE_NAME ? *(const char *)member != '\0'
                                                                  : *(const uint64_t *)member;
}

static int print_piece(const struct plan_piece *piece, const struct plan *plan, char *buf,
                       size_t capacity)
{
    const void *member = (const char *)plan + piece->at;
    const struct plan_place *place = member;

    if (piece->type == PIECE_WORD || piece->type == PIECE_NAME)
        return snprintf(buf, capacity, "%s", (const char *)member);
    if (piece->type == PIECE_MICRO)
        return print_micro(piece_value(piece, plan), buf, capacity);
    return snprintf(buf, capacity, "%llu%s", (unsigned long long)piece_value(piece, plan),
                    piece->type == PIECE_PLACE && place->is_percent ? "%" : "");
}

int plan_form_print(const struct plan_piece *piece, const struct plan *plan, char *buf,
                    size_t capacity)
{
    int len = 0;

    for (; piece->type && (!piece->is_optional || piece_value(piece, plan)); piece++) {
        if (piece->before)
            len += snprintf(buf + len, capacity - (size_t)len, "%s", piece->before);
        len += print_piece(piece, plan, buf + len, capacity - (size_t)len);
    }
    return len;
}

bool plan_parameter_parse(const struct plan_parameter *p, struct plan *plan, const char *s,
                          size_t len)
{
    if (p->parse)
        return p->parse(plan, s, len);
    if (p->flag)
        *(bool *)((char *)plan + p->flag) = true;
    if (p->plain && len == strlen(p->plain) && !memcmp(s, p->plain, len))
        return true;
    return plan_form_parse(p->piece, plan, s, len) &&
           (!p->rises || piece_value(&p->piece[0], plan) < piece_value(&p->piece[1], plan)) &&
           (!p->holds || p->holds(plan));
}

int plan_parameter_print(const struct plan_parameter *p, const struct plan *plan, char *buf,
                         size_t capacity)
{
    const struct plan_piece *last = p->piece;

    if (p->print)
        return p->print(plan, buf, capacity);
    while (last[1].type && !last[1].is_optional)
        last++;
    return (p->flag ? *((const char *)plan + p->flag) : piece_value(last, plan) > p->usual)
               ? plan_form_print(p->piece, plan, buf, capacity)
               : 0;
}

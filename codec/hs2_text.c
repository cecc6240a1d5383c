/*
 * Strings and binary values: chunks, UTF-16 units, surrogates (docs/HESSIAN2.md).
 */
#include "codec/hs2_read.h"
#include "codec/json_write.h"
#include "codec/utf.h"

/* `units` UTF-16 units.  A high surrogate waits for its partner, also over chunk borders. */
struct text_state {
    struct buf *out;
    enum hs2_text_form form;
    uint32_t high; /* pending high surrogate, 0 = none */
};

static void put_replacement(struct text_state *t)
{
    if (t->out != NULL)
        buf_add(t->out, UTF_REPLACEMENT, 3);
}

static void put_surrogate(struct text_state *t, uint32_t unit)
{
    if (unit < 0xdc00) {
        if (t->high != 0)
            put_replacement(t);
        t->high = unit;
        return;
    }
    if (t->high == 0) {
        put_replacement(t);
        return;
    }
    if (t->out != NULL)
        utf_add_code_point(t->out, 0x10000 + ((t->high - 0xd800) << 10) + (unit - 0xdc00));
    t->high = 0;
}

/* Bytes of the unit at p: like a UTF-8 character of at most three bytes, surrogates allowed. */
static size_t unit_len(const uint8_t *p, size_t n)
{
    if (p[0] == 0xed && n >= 3 && p[1] >= 0xa0 && p[1] <= 0xbf && (p[2] & 0xc0) == 0x80)
        return 3;
    return p[0] < 0xf0 ? utf_char_len(p, n) : 0;
}

static void put_plain(struct text_state *t, const uint8_t *p, size_t n)
{
    if (t->high != 0) {
        put_replacement(t);
        t->high = 0;
    }
    if (t->out == NULL)
        return;
    if (n == 1 && t->form == HS2_TEXT_JSON && (p[0] < 0x20 || p[0] == '"' || p[0] == '\\'))
        json_add_special(t->out, p[0]);
    else
        buf_add(t->out, p, n);
}

static bool take_units(struct hs2_reader *r, size_t units, struct text_state *t)
{
    if (units > hs2_left(r))
        return false;
    while (units > 0) {
        size_t most = units < hs2_left(r) ? units : hs2_left(r);
        size_t run = t->form == HS2_TEXT_JSON ? utf_plain_run(r->p, most)
                                              : utf_ascii_run(r->p, most);
        size_t n = 0;

        if (run != 0) {
            put_plain(t, r->p, run);
            r->p += run;
            units -= run;
            continue;
        }
        n = hs2_left(r) != 0 ? unit_len(r->p, hs2_left(r)) : 0;
        if (n == 0)
            return false;
        uint32_t unit = n == 3 ? utf_code_point(r->p, 3) : 0;

        if (unit >= 0xd800 && unit <= 0xdfff)
            put_surrogate(t, unit);
        else
            put_plain(t, r->p, n);
        r->p += n;
        units--;
    }
    return true;
}

/* Header of a chunk; *last says whether another one must follow. */
static bool text_chunk(struct hs2_reader *r, size_t *units, bool *last)
{
    uint8_t b = hs2_left(r) != 0 ? r->p[0] : 0xff;

    *last = b != 'R';
    if (b <= 0x1f) {
        *units = b;
        r->p += 1;
        return true;
    }
    if (b >= 0x30 && b <= 0x33 && hs2_left(r) >= 2) {
        *units = (size_t)(b - 0x30) << 8 | r->p[1];
        r->p += 2;
        return true;
    }
    if ((b == 'S' || b == 'R') && hs2_left(r) >= 3) {
        *units = get_be16(r->p + 1);
        r->p += 3;
        return true;
    }
    return false;
}

bool hs2_text(struct hs2_reader *r, struct buf *out, enum hs2_text_form form)
{
    struct text_state t = {.out = out, .form = form};
    bool last = false;

    while (!last) {
        size_t units = 0;

        if (!text_chunk(r, &units, &last) || !take_units(r, units, &t))
            return false;
    }
    if (t.high != 0)
        put_replacement(&t);
    return true;
}

static bool binary_chunk(struct hs2_reader *r, size_t *n, bool *last)
{
    uint8_t b = hs2_left(r) != 0 ? r->p[0] : 0xff;

    *last = b != 'A';
    if (b >= 0x20 && b <= 0x2f) {
        *n = b - 0x20U;
        r->p += 1;
        return true;
    }
    if (b >= 0x34 && b <= 0x37 && hs2_left(r) >= 2) {
        *n = (size_t)(b - 0x34) << 8 | r->p[1];
        r->p += 2;
        return true;
    }
    if ((b == 'B' || b == 'A') && hs2_left(r) >= 3) {
        *n = get_be16(r->p + 1);
        r->p += 3;
        return true;
    }
    return false;
}

bool hs2_binary(struct hs2_reader *r, struct buf *out)
{
    bool last = false;

    while (!last) {
        size_t n = 0;

        if (!binary_chunk(r, &n, &last) || n > hs2_left(r))
            return false;
        if (out != NULL)
            buf_add(out, r->p, n);
        r->p += n;
    }
    return true;
}

#include "gateway/trace.h"

#include <string.h>

static uint64_t next(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Crockford's base 32, as in ULID: ten characters of time, sixteen of chance. */
void request_id_make(uint64_t wall_ms, uint64_t *random, char out[REQUEST_ID_LEN + 1])
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t a = next(random);
    uint64_t b = next(random);

    for (int i = 9; i >= 0; i--) {
        out[i] = alphabet[wall_ms & 31];
        wall_ms >>= 5;
    }
    for (int i = 10; i < 18; i++) {
        out[i] = alphabet[a & 31];
        a >>= 5;
    }
    for (int i = 18; i < REQUEST_ID_LEN; i++) {
        out[i] = alphabet[b & 31];
        b >>= 5;
    }
    out[REQUEST_ID_LEN] = '\0';
}

bool request_id_is_good(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && c != '.' && c != '_' && c != '-')
            return false;
    }
    return s.n != 0 && s.n <= 128;
}

static bool is_hex(struct str s, bool *zero)
{
    *zero = true;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *zero = *zero && c == '0';
    }
    return true;
}

bool traceparent_is_good(struct str s)
{
    bool zero_trace = false;
    bool zero_span = false;
    bool ignored = false;

    /* W3C: what a later version appends is not for us; version ff does not exist */
    if (s.n < TRACEPARENT_LEN || str_starts(s, STR("ff")) ||
        (s.n > TRACEPARENT_LEN && (str_starts(s, STR("00")) || s.p[TRACEPARENT_LEN] != '-')))
        return false;
    return is_hex(str_sub(s, 0, 2), &ignored) && s.p[2] == '-' && s.p[35] == '-' &&
           s.p[52] == '-' && is_hex(str_sub(s, 3, 35), &zero_trace) && !zero_trace &&
           is_hex(str_sub(s, 36, 52), &zero_span) && !zero_span &&
           is_hex(str_sub(s, 53, 55), &ignored);
}

static void put_hex(char *at, uint64_t v)
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 15; i >= 0; i--) {
        at[i] = digits[v & 15];
        v >>= 4;
    }
}

void traceparent_make(struct str parent, uint64_t *random, char out[TRACEPARENT_LEN + 1])
{
    memcpy(out, "00-00000000000000000000000000000000-0000000000000000-01", TRACEPARENT_LEN + 1);
    if (parent.n >= TRACEPARENT_LEN) {
        memcpy(out + 3, parent.p + 3, TRACEPARENT_LEN - 3); /* in our version */
    } else {
        put_hex(out + 3, next(random));
        put_hex(out + 19, next(random) | 1U);
    }
    put_hex(out + 36, next(random) | 1U);
}

#include "codec/hs2_read.h"
#include "codec/serial.h"

bool serial_hessian2_text(const uint8_t *p, size_t n, struct buf *out)
{
    struct hs2_reader r;
    bool ok = false;

    hs2_init(&r);
    hs2_begin(&r, p, n, 1);
    ok = hs2_next(&r).kind == HS2_STRING && hs2_text(&r, out, HS2_TEXT_PLAIN);
    hs2_free(&r);
    return ok;
}

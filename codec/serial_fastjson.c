#include "codec/json_read.h"
#include "codec/serial.h"

/* A 2.7 provider that is set to fastjson: the body is JSON text. */
bool serial_fastjson_text(const uint8_t *p, size_t n, struct buf *out)
{
    struct str text = str_trim((struct str){(const char *)p, n});

    return json_string_decode(text, out);
}

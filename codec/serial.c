#include "codec/serial.h"

static const struct serial serials[32] = {
    [SERIAL_HESSIAN2] = {.name = "hessian2", .decode_text = serial_hessian2_text},
    [SERIAL_FASTJSON] = {.name = "fastjson", .decode_text = serial_fastjson_text},
    [SERIAL_FASTJSON2] = {.name = "fastjson2", .decode_text = serial_fastjson2_text},
};

const struct serial *serial_find(unsigned id)
{
    return id < 32 && serials[id].name != NULL ? &serials[id] : NULL;
}

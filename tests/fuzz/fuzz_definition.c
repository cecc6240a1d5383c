/*
 * What a provider published of its service, or said of it by telnet; what is kept of it reads the same again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/fatal.h"
#include "registry/definition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct definition_view v;
    struct definition *d = NULL;
    struct definition *again = NULL;
    struct arena a;
    struct err e = {0};

    arena_init(&a);
    if (definition_parse(text, &a, &v, &e) || definition_parse_telnet(text, &a, &v, &e)) {
        d = definition_new(&v, &e);
        ASSERT(d != NULL || e.text[0] != '\0');
    } else {
        ASSERT(e.text[0] != '\0');
    }
    if (d != NULL) {
        again = definition_read((struct str){d->text, d->n}, &e);
        ASSERT(again != NULL && definition_equal(d, again));
    }
    definition_put(d);
    definition_put(again);
    arena_free(&a);
    return 0;
}

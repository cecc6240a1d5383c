/*
 * The configuration: any text is accepted or refused with at least one sentence, and what is accepted can be
 * printed (-T), compared and given back.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/fatal.h"
#include "gateway/route.h"
#include "gateway/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct settings *s)
{
    const char *keys[32];
    struct route_table *t = route_table_build(s);

    ASSERT(settings_restart_keys(s, s, keys, ARRAY_LEN(keys)) == 0);
    for (size_t i = 0; i < s->n_services; i++)
        ASSERT(settings_service(s, s->services[i].name) != NULL);
    route_table_free(t);
    settings_put(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config_errors errs = {.file = "fuzz.yaml"};
    struct settings *s = settings_parse("fuzz.yaml", (struct str){(const char *)data, size}, &errs);
    struct buf text;

    ASSERT((s == NULL) == (errs.n != 0));
    buf_init(&text, 1024 * 1024);
    config_errors_print(&errs, &text);
    ASSERT((text.len != 0) == (errs.n != 0));
    buf_free(&text);
    if (s != NULL)
        use(s);
    return 0;
}

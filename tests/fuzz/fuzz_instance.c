/*
 * What instances and applications write into the registry: an instance node, metadata, a mapping, by the first byte.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/fatal.h"
#include "registry/instance.h"
#include "registry/provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_instance(struct str text, struct arena *a)
{
    struct instance i;
    struct err e = {0};

    if (instance_parse(text, a, &i, &e))
        free(instance_clone(&i));
    else
        ASSERT(e.text[0] != '\0');
}

static void use_metadata(struct str text, struct arena *a)
{
    const struct instance i = {
        .host = STR("192.0.2.1"), .port = 20880, .params = STR("timestamp=1")};
    struct app_metadata m;
    struct err e = {0};
    size_t skipped = 0;
    struct buf b;

    if (!metadata_parse(text, STR("app"), a, &m, &skipped, &e)) {
        ASSERT(e.text[0] != '\0');
        return;
    }
    buf_init(&b, 1 << 20);
    for (size_t j = 0; j < m.n; j++) {
        struct provider p;
        size_t n = 0;

        ASSERT(metadata_find(&m, m.services[j].interface, &n) != NULL && n != 0);
        buf_truncate(&b, 0);
        instance_url(&i, &m.services[j], &b);
        if (!provider_from_url(buf_str(&b), a, &p, &e))
            ASSERT(e.text[0] != '\0');
    }
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data + 1, size != 0 ? size - 1 : 0};
    struct str apps[MAPPING_APPS_MAX];
    struct arena a;

    if (size == 0)
        return 0;
    arena_init(&a);
    if (data[0] == 'i')
        use_instance(text, &a);
    else if (data[0] == 'm')
        use_metadata(text, &a);
    else
        ASSERT(mapping_parse(text, apps) <= MAPPING_APPS_MAX);
    arena_free(&a);
    return 0;
}

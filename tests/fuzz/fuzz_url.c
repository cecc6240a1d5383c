/*
 * Registry texts: percent coding, URLs, reference keys, providers and their lists.
 * What is printed must read back the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/directory.h"
#include "registry/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void coding(struct str text)
{
    struct buf coded;
    struct buf plain;

    buf_init(&coded, SIZE_MAX);
    buf_init(&plain, SIZE_MAX);
    url_encode(text, &coded);
    ASSERT(url_decode(buf_str(&coded), &plain));
    ASSERT(str_eq(buf_str(&plain), text));
    ASSERT(url_text_ok(buf_str(&coded)));
    buf_free(&coded);
    buf_free(&plain);
}

static void key(struct str text)
{
    struct refkey k;
    struct refkey again;
    struct buf b;
    struct err e;

    if (!refkey_parse(text, &k, &e))
        return;
    buf_init(&b, REFKEY_TEXT_MAX);
    refkey_print(&k, &b);
    ASSERT(!b.failed);
    ASSERT(refkey_parse(buf_str(&b), &again, &e));
    ASSERT(refkey_eq(&k, &again));
    buf_free(&b);
}

/* The list of one provider named twice has one, and equals the list of what was printed of it. */
static void lists(const struct provider *p, const struct provider *read_back)
{
    const struct provider twice[2] = {*p, *p};
    const struct refkey k = {p->interface, p->version, p->group};
    struct directory *a = directory_build(&k, twice, 2, DIRECTORY_REGISTRY);
    struct directory *b = directory_build(&k, read_back, 1, DIRECTORY_SNAPSHOT);

    ASSERT(a->n == 1);
    ASSERT(directory_equal(a, b));
    ASSERT(provider_matches(&a->providers[0], &k));
    directory_put(a);
    directory_put(b);
}

static void provider(struct str text, struct arena *a)
{
    struct provider p;
    struct provider again;
    struct buf b;
    struct err e;

    if (!provider_from_url(text, a, &p, &e)) {
        ASSERT(e.text[0] != '\0');
        return;
    }
    ASSERT(p.port != 0 && p.host.n != 0);
    if (p.unusable != USABLE)
        return;
    buf_init(&b, (size_t)2 * URL_MAX);
    provider_print(&p, NULL, 0, &b);
    if (b.len <= URL_MAX) {
        ASSERT(provider_from_url(buf_str(&b), a, &again, &e));
        lists(&p, &again);
    }
    buf_free(&b);
    for (uint64_t now = 0; now < 1800000; now += 299999) {
        uint64_t wall = p.timestamp_ms > 600000 ? p.timestamp_ms - 600000 + now : now;

        ASSERT(provider_weight(&p, STR("get"), wall) <= INT32_MAX);
    }
    bool written = false;

    (void)provider_timeout_ms(&p, STR("get"), &written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct str decoded = STR_NONE;
    struct arena a;
    struct err e;

    arena_init(&a);
    coding(text);
    key(text);
    provider(text, &a);
    if (url_decode_node(text, &a, &decoded, &e))
        provider(decoded, &a);
    arena_free(&a);
    return 0;
}

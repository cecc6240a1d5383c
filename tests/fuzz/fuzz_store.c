/*
 * The saved list behind its checksum: the input gets the sum that belongs to it.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fatal.h"
#include "registry/definition.h"
#include "registry/provider.h"
#include "registry/rules.h"
#include "registry/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_registry(void *ctx, const struct store_registry *r)
{
    (void)ctx;
    ASSERT(r->name.n <= STORE_NAME_MAX);
}

static void on_entry(void *ctx, const struct store_entry *s)
{
    struct refkey k;
    struct err e;

    ASSERT(refkey_make(s->key.interface, s->key.version, s->key.group, &k, &e));
    ASSERT(s->n_urls <= STORE_URLS_MAX);
    for (size_t i = 0; i < s->n_urls; i++) {
        struct provider p;

        if (!provider_from_url(s->urls[i], ctx, &p, &e))
            ASSERT(e.text[0] != '\0');
    }
}

static void on_revision(void *ctx, const struct store_revision *v)
{
    (void)ctx;
    ASSERT(app_name_ok(v->app) && revision_ok(v->revision));
    for (size_t i = 0; i < v->services.n; i++)
        ASSERT(app_service_ok(&v->services.services[i]));
}

static void on_rule(void *ctx, const struct store_rule *v)
{
    static const enum rule_node kinds[] = {RULE_NODE_CONFIGURATORS, RULE_NODE_CONDITION,
                                           RULE_NODE_TAG};
    struct rules *r = NULL;
    struct err e;

    (void)ctx;
    ASSERT(v->node.n <= STORE_RULE_NODE_MAX && v->text.n <= STORE_RULE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        r = NULL;
        if (rules_from_node(v->node, kinds[i], v->text, &r, &e) == RULE_OK)
            ASSERT(r->text.n == v->text.n);
        rules_put(r);
        rules_put(rules_from_saved_urls(v->node, kinds[i], v->text, STR("10.0.0.1")));
    }
}

static void on_definition(void *ctx, const struct store_definition *s)
{
    struct definition *d = NULL;
    struct err e;

    (void)ctx;
    ASSERT(s->application.n <= STORE_APPLICATION_MAX);
    d = definition_read(s->text, &e);
    ASSERT(d == NULL || d->n <= DEFINITION_MAX);
    definition_put(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct store_reader r = {.on_registry = on_registry,
                             .on_entry = on_entry,
                             .on_revision = on_revision,
                             .on_rule = on_rule,
                             .on_definition = on_definition,
                             .ctx = &a};
    struct buf b;
    struct err e;

    arena_init(&a);
    buf_init(&b, STORE_BYTES_MAX);
    buf_add(&b, data, size);
    ASSERT(store_read(buf_str(&b), &r, &e) == STORE_DAMAGED || size != 0);
    buf_printf(&b, "\"sum\":\"%016llx\"}\n",
               (unsigned long long)store_sum(STORE_SUM_START, buf_str(&b)));
    (void)!store_read(buf_str(&b), &r, &e);
    buf_free(&b);
    arena_free(&a);
    return 0;
}

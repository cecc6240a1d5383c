#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/fatal.h"
#include "registry/store.h"
#include "registry/store_form.h"
#include "registry/url.h"

/* The text before the checksum line; false when that line is not what it must be. */
static bool verify(struct str text, struct str *content)
{
    char expected[STORE_SUM_LINE + 1];

    if (text.n < STORE_SUM_LINE)
        return false;
    *content = str_sub(text, 0, text.n - STORE_SUM_LINE);
    snprintf(expected, sizeof(expected), STORE_SUM_FORM,
             (unsigned long long)store_sum(STORE_SUM_START, *content));
    return str_is(str_sub(text, content->n, text.n), expected);
}

static struct str next_line(struct str *text)
{
    struct str line = str_cut(*text, '\n', text);

    return str_ends(line, STR(",")) ? str_sub(line, 0, line.n - 1) : line;
}

/* The first line opens an array that ends elsewhere; closed here, it is JSON of its own. */
static bool format_known(struct str line, struct err *e)
{
    struct buf whole;
    json_t *doc = NULL;
    json_int_t format = 0;

    buf_init(&whole, 4096);
    buf_add_str(&whole, line);
    buf_add_str(&whole, STR("]}"));
    if (!whole.failed)
        doc = json_loadb((const char *)whole.data, whole.len, JSON_REJECT_DUPLICATES, NULL);
    format = json_integer_value(json_object_get(doc, "format"));
    json_decref(doc);
    buf_free(&whole);
    if (format != STORE_FORMAT)
        err_set(e, "the saved list has format %lld, this program knows format %d",
                (long long)format, STORE_FORMAT);
    return format == STORE_FORMAT;
}

static bool get_text(const json_t *o, const char *key, size_t max, struct str *out)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_string(v) || json_string_length(v) > max)
        return false;
    *out = (struct str){json_string_value(v), json_string_length(v)};
    return url_text_ok(*out);
}

static bool get_number(const json_t *o, const char *key, int64_t lowest, int64_t *out)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_integer(v) || json_integer_value(v) < lowest)
        return false;
    *out = json_integer_value(v);
    return true;
}

static bool deliver_registry(const json_t *o, struct store_reader *r)
{
    struct store_registry g = {0};

    if (!get_text(o, "name", STORE_NAME_MAX, &g.name) ||
        !get_number(o, "max_zxid", INT64_MIN, &g.max_zxid) ||
        !get_number(o, "root_czxid", INT64_MIN, &g.root_czxid) ||
        (json_object_get(o, "consumer_ip") != NULL &&
         !get_text(o, "consumer_ip", URL_HOST_MAX, &g.consumer_ip)))
        return false;
    r->on_registry(r->ctx, &g);
    return true;
}

static bool get_urls(const json_t *list, struct str *urls)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_string(v) || json_string_length(v) > URL_MAX)
            return false;
        urls[i] = (struct str){json_string_value(v), json_string_length(v)};
        if (!url_text_ok(urls[i]))
            return false;
    }
    return true;
}

static bool deliver_entry(const json_t *o, struct store_reader *r)
{
    const json_t *list = json_object_get(o, "providers");
    size_t n = json_array_size(list);
    struct store_entry s = {.n_urls = n};
    const json_t *apps = json_object_get(o, "applications");
    struct str reference = STR_NONE;
    struct err e;
    int64_t saved = 0;
    struct str *urls = NULL;
    bool ok = false;

    if (!json_is_array(list) || n > STORE_URLS_MAX ||
        !get_text(o, "registry", STORE_NAME_MAX, &s.registry) ||
        !get_text(o, "reference", REFKEY_TEXT_MAX, &reference) ||
        !get_number(o, "czxid", INT64_MIN, &s.czxid) || !get_number(o, "saved_ms", 0, &saved) ||
        !refkey_parse(reference, &s.key, &e) ||
        (apps != NULL && !get_text(o, "applications", MAPPING_TEXT_MAX, &s.apps)))
        return false;
    urls = xcalloc(n + 1, sizeof(*urls));
    ok = get_urls(list, urls);
    if (ok) {
        s.saved_wall_ms = (uint64_t)saved;
        s.urls = urls;
        r->on_entry(r->ctx, &s);
    }
    free(urls);
    return ok;
}

static struct str text_or_none(const json_t *v)
{
    return json_is_string(v) ? (struct str){json_string_value(v), json_string_length(v)} : STR_NONE;
}

static struct str item_text(const json_t *list, size_t i)
{
    return text_or_none(json_array_get(list, i));
}

/* [interface, protocol, path, port, query] */
static bool get_service(const json_t *list, struct app_service *out)
{
    const json_t *port = json_array_get(list, 3);

    if (json_array_size(list) != 5 || !json_is_integer(port) || json_integer_value(port) < 0 ||
        json_integer_value(port) > UINT16_MAX)
        return false;
    *out = (struct app_service){.interface = item_text(list, 0),
                                .protocol = item_text(list, 1),
                                .path = item_text(list, 2),
                                .port = (uint16_t)json_integer_value(port),
                                .query = item_text(list, 4)};
    return app_service_ok(out);
}

static bool deliver_revision(const json_t *o, struct store_reader *r)
{
    const json_t *list = json_object_get(o, "services");
    size_t n = json_array_size(list);
    struct store_revision v = {.services.n = n};
    bool ok = json_is_array(list) && n <= METADATA_SERVICES_MAX &&
              get_text(o, "registry", STORE_NAME_MAX, &v.registry) &&
              get_text(o, "application", APP_NAME_MAX, &v.app) && app_name_ok(v.app) &&
              get_text(o, "revision", REVISION_MAX, &v.revision) && revision_ok(v.revision);

    if (!ok)
        return false;
    v.services.services = xcalloc(n + 1, sizeof(*v.services.services));
    for (size_t i = 0; ok && i < n; i++)
        ok = get_service(json_array_get(list, i), &v.services.services[i]);
    if (ok) {
        metadata_sort(&v.services);
        r->on_revision(r->ctx, &v);
    }
    free(v.services.services);
    return ok;
}

static bool deliver_rule(const json_t *o, struct store_reader *r)
{
    const json_t *text = json_object_get(o, "text");
    struct store_rule v = {.text = text_or_none(text)};

    if (!json_is_string(text) || v.text.n > STORE_RULE_MAX ||
        !get_text(o, "registry", STORE_NAME_MAX, &v.registry) ||
        !get_text(o, "node", STORE_RULE_NODE_MAX, &v.node))
        return false;
    r->on_rule(r->ctx, &v);
    return true;
}

static bool deliver_definition(const json_t *o, struct store_reader *r)
{
    struct store_definition d = {0};
    struct str reference = STR_NONE;
    struct err e;
    char *text = NULL;

    if (!get_text(o, "registry", STORE_NAME_MAX, &d.registry) ||
        !get_text(o, "reference", REFKEY_TEXT_MAX, &reference) ||
        !get_text(o, "application", STORE_APPLICATION_MAX, &d.application) ||
        !json_is_object(json_object_get(o, "definition")) || !refkey_parse(reference, &d.key, &e))
        return false;
    text = json_dumps(json_object_get(o, "definition"), JSON_COMPACT);
    if (text == NULL)
        return false;
    d.text = str_from(text);
    r->on_definition(r->ctx, &d);
    free(text);
    return true;
}

/* The kinds of lines, in the order in which they come. */
static const struct {
    size_t max;
    bool (*deliver)(const json_t *o, struct store_reader *r);
    const char *opens; /* the line before the first one */
} parts[] = {
    {STORE_REGISTRIES_MAX, deliver_registry, ""},
    {STORE_ENTRIES_MAX, deliver_entry, STORE_MIDDLE},
    {STORE_REVISIONS_MAX, deliver_revision, STORE_REVISIONS},
    {STORE_RULES_MAX, deliver_rule, STORE_RULES},
    {STORE_DEFINITIONS_MAX, deliver_definition, STORE_DEFINITIONS},
};

static void deliver(struct str line, size_t part, size_t *n, struct store_reader *r)
{
    json_t *o = NULL;
    bool ok = false;

    if (line.n == 0)
        return;
    if (*n < parts[part].max) {
        o = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
        ok = parts[part].deliver(o, r);
        json_decref(o);
    }
    (*n)++;
    if (!ok)
        r->n_ignored++;
}

/* 0 = this line opens no part behind `part`; a part without lines is left out. */
static size_t part_opened(struct str line, size_t part)
{
    for (size_t i = part + 1; i < ARRAY_LEN(parts); i++) {
        if (str_is(line, parts[i].opens))
            return i;
    }
    return 0;
}

enum store_result store_read(struct str text, struct store_reader *r, struct err *e)
{
    struct str content = STR_NONE;
    size_t part = 0;
    size_t n = 0;

    r->n_ignored = 0;
    if (!verify(text, &content)) {
        err_set(e, "the saved list is damaged: its checksum does not match");
        return STORE_DAMAGED;
    }
    if (!format_known(next_line(&content), e))
        return STORE_DAMAGED;
    while (content.n != 0) {
        struct str line = next_line(&content);

        size_t opened = part_opened(line, part);

        if (opened != 0) {
            part = opened;
            n = 0;
        } else if (str_is(line, "]")) { /* STORE_END without its comma */
            break;
        } else {
            deliver(line, part, &n, r);
        }
    }
    return STORE_OK;
}

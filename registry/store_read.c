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
        !get_number(o, "root_czxid", INT64_MIN, &g.root_czxid))
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
    struct str reference = STR_NONE;
    struct err e;
    int64_t saved = 0;
    struct str *urls = NULL;
    bool ok = false;

    if (!json_is_array(list) || n > STORE_URLS_MAX ||
        !get_text(o, "registry", STORE_NAME_MAX, &s.registry) ||
        !get_text(o, "reference", REFKEY_TEXT_MAX, &reference) ||
        !get_number(o, "czxid", INT64_MIN, &s.czxid) || !get_number(o, "saved_ms", 0, &saved) ||
        !refkey_parse(reference, &s.key, &e))
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

static void deliver(struct str line, bool is_entry, size_t *n, struct store_reader *r)
{
    size_t max = is_entry ? STORE_ENTRIES_MAX : STORE_REGISTRIES_MAX;
    json_t *o = NULL;
    bool ok = false;

    if (line.n == 0)
        return;
    if (*n < max) {
        o = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
        ok = is_entry ? deliver_entry(o, r) : deliver_registry(o, r);
        json_decref(o);
    }
    (*n)++;
    if (!ok)
        r->n_ignored++;
}

enum store_result store_read(struct str text, struct store_reader *r, struct err *e)
{
    struct str content = STR_NONE;
    bool in_entries = false;
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

        if (!in_entries && str_is(line, STORE_MIDDLE)) {
            in_entries = true;
            n = 0;
        } else if (str_is(line, "]")) { /* STORE_END without its comma */
            break;
        } else {
            deliver(line, in_entries, &n, r);
        }
    }
    return STORE_OK;
}

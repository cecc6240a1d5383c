#include "gateway/merge.h"

#include <stdlib.h>
#include <string.h>

#include "codec/json_read.h"

struct member {
    struct str name; /* as written, without quotes */
    struct str value;
    size_t order;
    bool hidden; /* a later one has the same name */
};

static void join_lists(const struct str *texts, size_t n, struct buf *out)
{
    bool first = true;

    buf_add_u8(out, '[');
    for (size_t i = 0; i < n; i++) {
        struct str inside = str_trim(str_sub(texts[i], 1, texts[i].n - 1));

        if (inside.n == 0)
            continue;
        if (!first)
            buf_add_u8(out, ',');
        first = false;
        buf_add_str(out, inside);
    }
    buf_add_u8(out, ']');
}

static size_t count_members(const struct str *texts, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++) {
        struct json_each each = {0};
        struct json_token name;
        struct str value;

        while (json_object_next(&each, texts[i], &name, &value))
            total++;
    }
    return total;
}

static void collect_members(const struct str *texts, size_t n, struct member *v)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        struct json_each each = {0};
        struct json_token name;
        struct str value;

        while (json_object_next(&each, texts[i], &name, &value)) {
            v[at] = (struct member){.name = name.text, .value = value, .order = at};
            at++;
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a;
    const struct member *y = *(struct member *const *)b;
    int order = str_cmp(x->name, y->name);

    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static void hide_earlier(struct member *v, size_t n, struct arena *a)
{
    struct member **sorted = arena_alloc(a, (n + 1) * sizeof(*sorted));

    for (size_t i = 0; i < n; i++)
        sorted[i] = &v[i];
    qsort(sorted, n, sizeof(*sorted), by_name);
    for (size_t i = 1; i < n; i++)
        sorted[i - 1]->hidden = str_eq(sorted[i - 1]->name, sorted[i]->name);
}

static void unite_objects(const struct str *texts, size_t n, struct arena *a, struct buf *out)
{
    size_t n_members = count_members(texts, n);
    struct member *v = arena_alloc(a, (n_members + 1) * sizeof(*v));
    bool first = true;

    collect_members(texts, n, v);
    hide_earlier(v, n_members, a);
    buf_add_u8(out, '{');
    for (size_t i = 0; i < n_members; i++) {
        if (v[i].hidden)
            continue;
        if (!first)
            buf_add_u8(out, ',');
        first = false;
        buf_add_u8(out, '"');
        buf_add_str(out, v[i].name);
        buf_add_str(out, STR("\":"));
        buf_add_str(out, v[i].value);
    }
    buf_add_u8(out, '}');
}

enum merge_result merge_json(const struct str *texts, size_t n, struct arena *a, struct buf *out)
{
    struct str *some = arena_alloc(a, (n + 1) * sizeof(*some));
    size_t n_some = 0;
    size_t n_lists = 0;
    size_t n_objects = 0;

    for (size_t i = 0; i < n; i++) {
        struct str text = str_trim(texts[i]);
        enum json_kind kind = text.n != 0 ? json_kind_of(text) : JSON_TOKEN_NULL;

        if (kind == JSON_TOKEN_NULL)
            continue;
        n_lists += kind == JSON_TOKEN_BEGIN_ARRAY ? 1U : 0U;
        n_objects += kind == JSON_TOKEN_BEGIN_OBJECT ? 1U : 0U;
        some[n_some++] = text;
    }
    if (n_some == 0)
        return MERGE_NULL;
    if (n_some == 1)
        buf_add_str(out, some[0]);
    else if (n_lists == n_some)
        join_lists(some, n_some, out);
    else if (n_objects == n_some)
        unite_objects(some, n_some, a, out);
    else
        return MERGE_MISMATCH;
    return MERGE_OK;
}

#include <string.h>

#include "codec/invoke.h"
#include "codec/utf.h"
#include "gateway/bind.h"
#include "gateway/bind_source.h"
#include "gateway/keys.h"

enum { ATTACHMENT_MAX = 8192 };

/* ---------------------------------------------------------------- attachments */

bool bind_attachment_allowed(struct str name)
{
    static const char *const forbidden[] = {
        "generic",
        "path",
        "interface",
        "version",
        "group",
        "token",
        "_TO",
        "timeout-countdown",
        "async",
        "timeout",
        "enable-timeout-countdown",
        "remote.application",
        "id",
        "input",
    };

    for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
        if (str_eq_nocase(name, str_from(forbidden[i])))
            return false;
    }
    return name.n != 0;
}

static bool has_control(struct str s)
{
    size_t i = utf_plain_run((const uint8_t *)s.p, s.n);

    if (memchr(s.p, 0x7f, s.n) != NULL)
        return true;
    while (i < s.n && (unsigned char)s.p[i] >= 0x20)
        i++;
    return i < s.n;
}

void bind_attach(struct str name, struct str value, struct buf *out)
{
    if (value.n == 0 || value.n > ATTACHMENT_MAX || has_control(value))
        return;
    (void)invoke_attachment(name, value, out); /* what is not UTF-8 is left out */
}

static void forward_headers(const struct route *route, const struct request *r, struct arena *a,
                            struct buf *out)
{
    for (size_t i = 0; i < route->forward_headers.n; i++) {
        struct str name = route->forward_headers.v[i];
        struct str value = request_header(r, name);
        char *lower = NULL;

        if (value.p == NULL)
            continue;
        name = arena_printf(a, "http." STR_FMT, STR_ARG(name));
        lower = arena_cstr(a, name);
        for (size_t j = 0; j < name.n; j++)
            lower[j] = (char)(lower[j] >= 'A' && lower[j] <= 'Z' ? lower[j] | 0x20 : lower[j]);
        bind_attach((struct str){lower, name.n}, value, out);
    }
}

static struct binder binder_of(const struct route_match *m, const struct policy *policy,
                               const struct request *r, struct arena *a, struct problem *p)
{
    return (struct binder){.m = m,
                           .r = r,
                           .a = a,
                           .p = p,
                           .body = bind_body(r),
                           .duplicate_keys_last = policy->args_opts.duplicate_keys_last,
                           .max_depth = policy->args_opts.max_depth};
}

static void configured_attachments(const struct route_match *m, const struct policy *policy,
                                   const struct request *r, struct arena *a, struct buf *out)
{
    struct problem ignored = {0};
    struct binder b = binder_of(m, policy, r, a, &ignored);

    for (size_t i = 0; i < policy->attachments.n; i++) {
        const struct named_source *s = &policy->attachments.v[i];
        struct str value = STR_NONE;

        if (bind_attachment_allowed(s->name) && binder_text(&b, &s->source, &value) &&
            value.p != NULL)
            bind_attach(s->name, value, out);
    }
}

struct str bind_hash_key(const struct route_match *m, const struct policy *policy,
                         const struct request *r, struct arena *a)
{
    struct problem ignored = {0};
    struct binder b = binder_of(m, policy, r, a, &ignored);
    struct str key = STR_NONE;

    for (size_t i = 0; i < policy->hash_policy_text.n; i++) {
        struct str value = STR_NONE;

        if (!binder_text(&b, &policy->hash_policy[i], &value) || value.p == NULL)
            continue;
        key = key.n == 0 ? value : arena_printf(a, STR_FMT STR_FMT, STR_ARG(key), STR_ARG(value));
    }
    return key;
}

void bind_attachments(const struct route_match *m, const struct policy *policy,
                      const struct request *r, struct arena *a, struct buf *out)
{
    if (policy->attachments.n != 0)
        configured_attachments(m, policy, r, a, out);
    if (m != NULL)
        forward_headers(m->route, r, a, out);
    bind_attach(STR("request-id"), r->id, out);
}

/* ---------------------------------------------------------------- timeout */

static bool parse_timeout(struct str text, uint64_t *ms)
{
    return str_to_u64(text, UINT64_C(1) << 40, ms) || keys_parse_ms(text, ms);
}

bool bind_timeout(const struct request *r, struct str query, uint32_t max_ms, uint32_t *ms,
                  bool *given, struct problem *p)
{
    static const char *const names[] = {"X-Request-Timeout", "tri-service-timeout",
                                        "rest-service-timeout"};
    struct str text = query;
    uint64_t v = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && text.p == NULL; i++)
        text = request_header(r, str_from(names[i]));
    if (text.p == NULL)
        return true;
    if (!parse_timeout(text, &v) || v == 0) {
        problem_set(p, OUTCOME_BAD_REQUEST,
                    "the timeout is not a duration such as 800 or 800ms or 2s");
        return false;
    }
    *ms = v < max_ms ? (uint32_t)v : max_ms;
    *given = true;
    return true;
}

#include "gateway/identity.h"

#include <string.h>

#include "registry/network.h"

void identity_request_id(struct request *q, struct wctx *w, char out[REQUEST_ID_MAX + 1])
{
    struct str given = q->from_trusted_proxy ? request_header(q, STR("X-Request-Id")) : STR_NONE;

    if (request_id_is_good(given)) {
        memcpy(out, given.p, given.n);
        out[given.n] = '\0';
    } else {
        request_id_make(w->wall_ms, &w->random, out);
    }
    q->id = str_from(out);
}

void identity_client_ip(struct request *q, const struct settings *s)
{
    struct str list = q->from_trusted_proxy ? request_header(q, STR("X-Forwarded-For")) : STR_NONE;

    while (list.n != 0) {
        size_t comma = list.n;
        union address a;
        struct str one;

        while (comma > 0 && list.p[comma - 1] != ',')
            comma--;
        one = str_trim(str_sub(list, comma, list.n));
        list = str_sub(list, 0, comma > 0 ? comma - 1 : 0);
        if (!address_from_text(one, 0, &a))
            return;
        q->client_ip = one;
        if (!networks_contain(s->trusted_proxies, s->trusted_proxies_text.n, &a.sa))
            return;
    }
}

void identity_trace(const struct request *q, const struct settings *s, struct wctx *w,
                    char out[TRACEPARENT_LEN + 1])
{
    struct str parent = q->from_trusted_proxy ? request_header(q, STR("traceparent")) : STR_NONE;

    if (s->tracing.propagation != 0)
        return;
    if (!traceparent_is_good(parent))
        parent = STR_NONE;
    if (parent.n != 0 || s->tracing.generate)
        traceparent_make(parent, &w->random, out);
}

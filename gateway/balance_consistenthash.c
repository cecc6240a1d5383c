/*
 * The same provider for the same key, as Dubbo's consumers choose it (docs/REGISTRY.md section 8).  The ring decides;
 * balance.c walks it from the key's point to the first provider that may take the call.  Weights do not count.
 */
#include "codec/java_text.h"
#include "gateway/balance.h"
#include "gateway/balance_state.h"
#include "gateway/hash_ring.h"

static size_t pick(struct wctx *w, const struct balance_choice *c, const struct balance_call *call)
{
    return 0; /* the walk ends at the first */
}

/* "0,2": Dubbo's hash.arguments.  What is no index of an argument adds nothing. */
static void add_arguments(const struct balance_wish *wish, struct str indexes, struct buf *out)
{
    while (indexes.n != 0) {
        uint64_t i = 0;

        if (str_to_u64(str_trim(str_cut(indexes, ',', &indexes)), UINT32_MAX, &i) &&
            i < wish->n_args)
            java_text_add(&wish->args[i], out);
    }
}

struct ring_walk balance_ring_walk(struct ref *r, const struct balance_call *call)
{
    static const struct balance_wish nothing;
    const struct balance_wish *wish = call->wish != NULL ? call->wish : &nothing;
    struct str indexes = STR_NONE;
    uint32_t nodes = 0;
    struct str key = wish->hash_key;

    provider_hash(r->usable[0]->provider, call->method, &nodes, &indexes);
    if (wish->hash_nodes != 0)
        nodes = wish->hash_nodes;
    if (wish->hash_arguments.n != 0)
        indexes = wish->hash_arguments;
    if (key.p == NULL) {
        struct buf *text = balance_scratch(r);

        add_arguments(wish, indexes.n != 0 ? indexes : STR("0"), text);
        key = buf_str(text);
    }
    return hash_ring_walk(balance_ring(r, nodes != 0 ? nodes : RING_NODES_DEFAULT),
                          hash_ring_key(key));
}

const struct balancer balance_consistenthash = {
    .name = "consistenthash", .pick = pick, .by_key = true};

/*
 * Rows about the choice of a provider.
 */
#include "gateway/balance.h"
#include "gateway/bind.h"
#include "gateway/keys_row.h"

static bool is_index(struct str s)
{
    uint64_t i = 0;

    return str_to_u64(s, BIND_ARGS_MAX - 1, &i);
}

#define P struct policy
const struct key keys_hash[] = {
    {.name = "nodes",
     ROW_U32(P, hash.nodes),
     .def = "0",
     .lo = 0,
     .hi = RING_NODES_MAX,
     .help = "Points of a provider on the ring; 0: hash.nodes of the provider's URL, else 160."},
    {.name = "arguments",
     ROW_TEXTS(P, hash.arguments),
     .check = is_index,
     .form = "the number of an argument, the first is 0",
     .help =
         "Arguments that make the key; not given: hash.arguments of the provider's URL, else the first."},
    {.name = NULL},
};
#undef P

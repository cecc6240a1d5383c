#include "registry/network.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "registry/url.h"

/* The bytes of an address that a prefix counts, with IPv4-mapped addresses as IPv4. */
struct bytes {
    const uint8_t *p;
    unsigned bits; /* 32, 128; 0 = no address */
};

static struct bytes bytes_of(const union address *addr)
{
    if (addr->sa.sa_family == AF_INET)
        return (struct bytes){(const uint8_t *)&addr->v4.sin_addr, 32};
    if (addr->sa.sa_family != AF_INET6)
        return (struct bytes){NULL, 0};
    if (IN6_IS_ADDR_V4MAPPED(&addr->v6.sin6_addr))
        return (struct bytes){addr->v6.sin6_addr.s6_addr + 12, 32};
    return (struct bytes){addr->v6.sin6_addr.s6_addr, 128};
}

static bool bit(const uint8_t *p, unsigned i)
{
    return (p[i / 8] >> (7 - i % 8) & 1) != 0;
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    if (memcmp(a, b, bits / 8) != 0)
        return false;
    for (unsigned i = bits / 8 * 8; i < bits; i++) {
        if (bit(a, i) != bit(b, i))
            return false;
    }
    return true;
}

bool network_parse(struct str text, struct network *out, struct err *e)
{
    struct str prefix = STR_NONE;
    struct str host = str_cut(text, '/', &prefix);
    struct network n = {0};
    struct bytes b = {0};
    uint64_t length = 0;

    if (!address_from_text(host, 0, &n.addr)) {
        err_set(e, "\"" STR_FMT "\" is not a network such as 10.0.0.0/8 or fd00::/8",
                STR_ARG(str_sub(text, 0, 60)));
        return false;
    }
    b = bytes_of(&n.addr);
    length = b.bits;
    if (prefix.p != NULL && !str_to_u64(prefix, b.bits, &length)) {
        err_set(e, "prefix length \"" STR_FMT "\" is not a number from 0 to %u",
                STR_ARG(str_sub(prefix, 0, 20)), b.bits);
        return false;
    }
    for (unsigned i = (unsigned)length; i < b.bits; i++) {
        if (bit(b.p, i)) {
            err_set(e, "\"" STR_FMT "\" has bits set behind its prefix",
                    STR_ARG(str_sub(text, 0, 60)));
            return false;
        }
    }
    n.prefix_len = (unsigned)length;
    *out = n;
    return true;
}

bool network_contains(const struct network *net, const union address *addr)
{
    struct bytes n = bytes_of(&net->addr);
    struct bytes a = bytes_of(addr);

    return n.bits != 0 && n.bits == a.bits && same_prefix(n.p, a.p, net->prefix_len);
}

struct range {
    uint8_t prefix[16];
    uint8_t bits;
    uint8_t family; /* 32 or 128 */
};

/* No provider can be there, whatever the configuration says. */
static const struct range never[] = {
    {{0}, 8, 32},                   /* 0.0.0.0/8: "this host" */
    {{224}, 4, 32},                 /* multicast */
    {{255, 255, 255, 255}, 32, 32}, /* broadcast */
    {{0}, 128, 128},                /* :: */
    {{0xff}, 8, 128},               /* multicast */
};

/* Not unless configured: a written URL must not make us talk to a machine's metadata service. */
static const struct range not_by_default[] = {
    {{169, 254}, 16, 32},           /* link-local, with 169.254.169.254 */
    {{100, 100, 100, 200}, 32, 32}, /* metadata, Alibaba Cloud */
    {{0xfe, 0x80}, 10, 128},        /* link-local */
    {{0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54},
     128,
     128}, /* metadata, AWS */
};

static bool in_ranges(const struct range *r, size_t n, struct bytes a)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].family == a.bits && same_prefix(r[i].prefix, a.p, r[i].bits))
            return true;
    }
    return false;
}

bool network_allows(const struct network *nets, size_t n, const union address *addr)
{
    struct bytes a = bytes_of(addr);

    if (a.bits == 0 || in_ranges(never, ARRAY_LEN(never), a))
        return false;
    if (n == 0)
        return !in_ranges(not_by_default, ARRAY_LEN(not_by_default), a);
    for (size_t i = 0; i < n; i++) {
        if (network_contains(&nets[i], addr))
            return true;
    }
    return false;
}

bool address_from_text(struct str host, uint16_t port, union address *out)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char text[URL_HOST_MAX + 1] = "";

    *out = (union address){.sa.sa_family = AF_UNSPEC};
    if (!url_host_ok(host))
        return false;
    memcpy(text, host.p, host.n);
    if (getaddrinfo(text, NULL, &hints, &found) != 0)
        return false;
    if (found->ai_addrlen <= sizeof(*out))
        memcpy(out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (out->sa.sa_family == AF_INET)
        out->v4.sin_port = htons(port);
    else if (out->sa.sa_family == AF_INET6)
        out->v6.sin6_port = htons(port);
    return out->sa.sa_family != AF_UNSPEC;
}

void address_print(const union address *addr, struct buf *out)
{
    char text[INET6_ADDRSTRLEN] = "?";

    if (addr->sa.sa_family == AF_INET)
        inet_ntop(AF_INET, &addr->v4.sin_addr, text, sizeof(text));
    else if (addr->sa.sa_family == AF_INET6)
        inet_ntop(AF_INET6, &addr->v6.sin6_addr, text, sizeof(text));
    buf_add_str(out, str_from(text));
}

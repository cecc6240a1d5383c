#include "registry/reference_telnet.h"

#include <string.h>

#include "base/fatal.h"
#include "registry/core.h"
#include "registry/reference_definitions.h"

/* 2.7 and 3.x say their release, and refuse the command. */
static bool can_be_asked(const struct provider *p)
{
    return p->release.n == 0 && p->unusable == USABLE && !p->unlisted &&
           p->addr.sa.sa_family != AF_UNSPEC;
}

/* First the one that was started last, as with the report, which belongs to the last starter; then whose turn it is. */
static const struct provider *whom_to_ask(const struct reference *ref, const struct described *d)
{
    const struct directory *list = ref->directory;
    const struct provider *newest = NULL;
    size_t n = 0;
    size_t turn = 0;

    for (size_t i = 0; i < list->n; i++) {
        const struct provider *p = &list->providers[i];

        if (!str_is(p->application, d->application) || !can_be_asked(p))
            continue;
        n++;
        if (newest == NULL || p->timestamp_ms > newest->timestamp_ms)
            newest = p;
    }
    if (n == 0 || d->telnet_tries == 0)
        return newest;
    turn = (size_t)(d->telnet_tries - 1) % n;
    for (size_t i = 0; i < list->n; i++) {
        const struct provider *p = &list->providers[i];

        if (str_is(p->application, d->application) && can_be_asked(p) && turn-- == 0)
            return p;
    }
    return newest;
}

static struct telnet_ask *new_ask(const struct reference *ref, const struct described *d,
                                  const struct provider *p)
{
    struct str interface = ref->key.interface; /* a Java name, so it can be a part of a command */
    size_t n_key = strlen(ref->key_text) + 1;
    size_t n_application = strlen(d->application) + 1;
    struct telnet_ask *ask = xcalloc(1, sizeof(*ask) + n_key + n_application + interface.n + 1);
    char *texts = (char *)(ask + 1);

    ask->addr = p->addr;
    ask->key = memcpy(texts, ref->key_text, n_key);
    ask->application = memcpy(texts + n_key, d->application, n_application);
    ask->interface = memcpy(texts + n_key + n_application, interface.p, interface.n);
    return ask;
}

bool reference_ask_telnet(struct reference *ref, const struct described *d, bool tell)
{
    const struct provider *p = NULL;

    if (!ref->source->conf.telnet_methods || ref->directory == NULL || ref->home->n_workers == 0)
        return false;
    p = whom_to_ask(ref, d);
    if (p != NULL)
        registry_ask_telnet(ref->home, new_ask(ref, d, p));
    else if (tell)
        reference_event(
            ref, "methods of %s not known: no report, and no provider of 2.6 to ask by telnet",
            d->application);
    return p != NULL;
}

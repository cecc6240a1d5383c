#include "registry/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fatal.h"
#include "registry/store_form.h"
#include "registry/url.h"

#define FILE_NAME "references.json"
#define TEMP_NAME FILE_NAME ".tmp"

enum { FLUSH_AT = 256 << 10, CLOSING_BYTES = 256 };

/* Which part of the document is being written. */
enum part { PART_REGISTRIES, PART_ENTRIES, PART_REVISIONS, PART_RULES, PART_DEFINITIONS };

struct store_writer {
    int dir;
    int fd;
    enum part part;
    size_t n_registries;
    size_t n_entries;
    size_t n_revisions;
    size_t n_rules;
    size_t n_definitions;
    size_t written; /* bytes given to `out` so far */
    uint64_t sum;
    struct buf out;  /* not yet in the file */
    struct buf line; /* one entry */
    struct err err;  /* the first error; empty = none */
};

/* ---------------------------------------------------------------- writing */

uint64_t store_sum(uint64_t sum, struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        sum = (sum ^ (unsigned char)text.p[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void flush(struct store_writer *w)
{
    size_t done = 0;

    while (w->err.text[0] == '\0' && done < w->out.len) {
        ssize_t n = write(w->fd, w->out.data + done, w->out.len - done);

        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            err_set(&w->err, "cannot write " TEMP_NAME ": %s", strerror(n == 0 ? EIO : errno));
    }
    buf_truncate(&w->out, 0);
}

static void emit(struct store_writer *w, struct str text)
{
    w->sum = store_sum(w->sum, text);
    w->written += text.n;
    buf_add_str(&w->out, text);
    if (w->out.failed)
        err_set(&w->err, "no memory");
    if (w->out.len >= FLUSH_AT || w->out.failed)
        flush(w);
}

static void start_document(struct store_writer *w)
{
    buf_truncate(&w->line, 0);
    buf_printf(&w->line, STORE_OPENING "%llu,\"registries\":[\n", STORE_FORMAT,
               (unsigned long long)wall_ms());
    emit(w, buf_str(&w->line));
}

struct store_writer *store_begin(const char *dir, struct err *e)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;
    struct store_writer *w = NULL;

    if (dir_fd < 0) {
        err_set(e, "cannot open %s: %s", dir, strerror(errno));
        return NULL;
    }
    /* a fresh file: nothing that someone put in its place is followed or kept open by others */
    if (unlinkat(dir_fd, TEMP_NAME, 0) == 0 || errno == ENOENT)
        fd = openat(dir_fd, TEMP_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_set(e, "cannot create %s/%s: %s", dir, TEMP_NAME, strerror(errno));
        close(dir_fd);
        return NULL;
    }
    w = xcalloc(1, sizeof(*w));
    *w = (struct store_writer){.dir = dir_fd, .fd = fd, .sum = STORE_SUM_START};
    buf_init(&w->out, STORE_BYTES_MAX);
    buf_init(&w->line, STORE_BYTES_MAX);
    start_document(w);
    return w;
}

/* A JSON string; `s` has passed url_text_ok, so only two characters need care. */
static void add_string(struct buf *out, struct str s)
{
    size_t from = 0;

    buf_add_u8(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\') {
            buf_add_str(out, str_sub(s, from, i));
            buf_add_u8(out, '\\');
            from = i;
        }
    }
    buf_add_str(out, str_sub(s, from, s.n));
    buf_add_u8(out, '"');
}

/* Appends the composed line, if it leaves room for the end of the document. */
static bool emit_line(struct store_writer *w, size_t *n)
{
    if (w->line.failed || w->err.text[0] != '\0' ||
        w->line.len + CLOSING_BYTES > STORE_BYTES_MAX - w->written)
        return false;
    emit(w, *n != 0 ? STR(",\n") : STR(""));
    emit(w, buf_str(&w->line));
    (*n)++;
    return w->err.text[0] == '\0';
}

bool store_put_registry(struct store_writer *w, const struct store_registry *r)
{
    ASSERT(w->part == PART_REGISTRIES);

    if (w->n_registries == STORE_REGISTRIES_MAX || r->name.n > STORE_NAME_MAX ||
        !url_text_ok(r->name) || !url_text_ok(r->consumer_ip))
        return false;
    buf_truncate(&w->line, 0);
    buf_add_str(&w->line, STR("{\"name\":"));
    add_string(&w->line, r->name);
    buf_printf(&w->line, ",\"max_zxid\":%lld,\"root_czxid\":%lld", (long long)r->max_zxid,
               (long long)r->root_czxid);
    if (r->consumer_ip.n != 0) {
        buf_add_str(&w->line, STR(",\"consumer_ip\":"));
        add_string(&w->line, r->consumer_ip);
    }
    buf_add_u8(&w->line, '}');
    return emit_line(w, &w->n_registries);
}

static bool entry_ok(const struct store_entry *s)
{
    struct refkey k;
    struct err e;

    if (s->registry.n > STORE_NAME_MAX || s->n_urls > STORE_URLS_MAX || !url_text_ok(s->registry) ||
        s->apps.n > MAPPING_TEXT_MAX || !url_text_ok(s->apps) ||
        !refkey_make(s->key.interface, s->key.version, s->key.group, &k, &e))
        return false;
    for (size_t i = 0; i < s->n_urls; i++) {
        if (s->urls[i].n > URL_MAX || !url_text_ok(s->urls[i]))
            return false;
    }
    return true;
}

static void compose_entry(const struct store_entry *s, struct buf *line)
{
    struct buf key;

    buf_init(&key, REFKEY_TEXT_MAX);
    refkey_print(&s->key, &key);
    buf_truncate(line, 0);
    buf_add_str(line, STR("{\"registry\":"));
    add_string(line, s->registry);
    buf_add_str(line, STR(",\"reference\":"));
    add_string(line, buf_str(&key));
    buf_printf(line, ",\"czxid\":%lld,\"saved_ms\":%llu", (long long)s->czxid,
               (unsigned long long)s->saved_wall_ms);
    if (s->apps.n != 0) {
        buf_add_str(line, STR(",\"applications\":"));
        add_string(line, s->apps);
    }
    buf_add_str(line, STR(",\"providers\":["));
    for (size_t i = 0; i < s->n_urls; i++) {
        if (i != 0)
            buf_add_u8(line, ',');
        add_string(line, s->urls[i]);
    }
    buf_add_str(line, STR("]}"));
    if (key.failed)
        line->failed = true;
    buf_free(&key);
}

/* Parts come in the order of the enum; those after the entries only when they have something. */
static void begin(struct store_writer *w, enum part part, struct str opens)
{
    if (w->part < PART_ENTRIES)
        emit(w, STR("\n" STORE_MIDDLE "\n"));
    if (part > PART_ENTRIES && w->part < part)
        emit(w, opens);
    if (w->part < part)
        w->part = part;
}

bool store_put_entry(struct store_writer *w, const struct store_entry *s)
{
    ASSERT(w->part <= PART_ENTRIES);

    begin(w, PART_ENTRIES, STR(""));
    if (w->n_entries == STORE_ENTRIES_MAX || !entry_ok(s))
        return false;
    compose_entry(s, &w->line);
    return emit_line(w, &w->n_entries);
}

static bool revision_fits(const struct store_revision *v)
{
    bool ok = v->registry.n <= STORE_NAME_MAX && url_text_ok(v->registry) && app_name_ok(v->app) &&
              revision_ok(v->revision) && v->services.n <= METADATA_SERVICES_MAX;

    for (size_t i = 0; ok && i < v->services.n; i++)
        ok = app_service_ok(&v->services.services[i]);
    return ok;
}

static void add_service(struct buf *line, const struct app_service *s)
{
    buf_add_u8(line, '[');
    add_string(line, s->interface);
    buf_add_u8(line, ',');
    add_string(line, s->protocol);
    buf_add_u8(line, ',');
    add_string(line, s->path);
    buf_printf(line, ",%u,", (unsigned)s->port);
    add_string(line, s->query);
    buf_add_u8(line, ']');
}

static void compose_revision(const struct store_revision *v, struct buf *line)
{
    buf_truncate(line, 0);
    buf_add_str(line, STR("{\"registry\":"));
    add_string(line, v->registry);
    buf_add_str(line, STR(",\"application\":"));
    add_string(line, v->app);
    buf_add_str(line, STR(",\"revision\":"));
    add_string(line, v->revision);
    buf_add_str(line, STR(",\"services\":["));
    for (size_t i = 0; i < v->services.n; i++) {
        if (i != 0)
            buf_add_u8(line, ',');
        add_service(line, &v->services.services[i]);
    }
    buf_add_str(line, STR("]}"));
}

bool store_put_revision(struct store_writer *w, const struct store_revision *v)
{
    begin(w, PART_ENTRIES, STR(""));
    if (w->n_revisions == STORE_REVISIONS_MAX || !revision_fits(v))
        return false;
    begin(w, PART_REVISIONS, STR("\n" STORE_REVISIONS "\n"));
    compose_revision(v, &w->line);
    return emit_line(w, &w->n_revisions);
}

/* The text is an operator's: any text with any line ends.  False: no UTF-8. */
static bool add_any_string(struct buf *line, struct str s)
{
    json_t *v = json_stringn(s.n != 0 ? s.p : "", s.n);
    char *text = v != NULL ? json_dumps(v, JSON_ENCODE_ANY) : NULL;

    if (text != NULL)
        buf_add_str(line, str_from(text));
    free(text);
    json_decref(v);
    return text != NULL;
}

bool store_put_rule(struct store_writer *w, const struct store_rule *v)
{
    begin(w, PART_ENTRIES, STR(""));
    if (w->n_rules == STORE_RULES_MAX || v->registry.n > STORE_NAME_MAX ||
        v->node.n > STORE_RULE_NODE_MAX || v->text.n > STORE_RULE_MAX ||
        !url_text_ok(v->registry) || !url_text_ok(v->node))
        return false;
    buf_truncate(&w->line, 0);
    buf_add_str(&w->line, STR("{\"registry\":"));
    add_string(&w->line, v->registry);
    buf_add_str(&w->line, STR(",\"node\":"));
    add_string(&w->line, v->node);
    buf_add_str(&w->line, STR(",\"text\":"));
    if (!add_any_string(&w->line, v->text))
        return false;
    buf_add_u8(&w->line, '}');
    begin(w, PART_RULES, STR("\n" STORE_RULES "\n"));
    return emit_line(w, &w->n_rules);
}

bool store_put_definition(struct store_writer *w, const struct store_definition *d)
{
    struct buf key;

    if (w->n_definitions == STORE_DEFINITIONS_MAX || d->registry.n > STORE_NAME_MAX ||
        d->application.n > STORE_APPLICATION_MAX || !url_text_ok(d->registry) ||
        !url_text_ok(d->application))
        return false;
    begin(w, PART_DEFINITIONS, STR("\n" STORE_DEFINITIONS "\n"));
    buf_init(&key, REFKEY_TEXT_MAX);
    refkey_print(&d->key, &key);
    buf_truncate(&w->line, 0);
    buf_add_str(&w->line, STR("{\"registry\":"));
    add_string(&w->line, d->registry);
    buf_add_str(&w->line, STR(",\"reference\":"));
    add_string(&w->line, buf_str(&key));
    buf_add_str(&w->line, STR(",\"application\":"));
    add_string(&w->line, d->application);
    buf_add_str(&w->line, STR(",\"definition\":"));
    buf_add_str(&w->line, d->text);
    buf_add_u8(&w->line, '}');
    buf_free(&key);
    return emit_line(w, &w->n_definitions);
}

static void end_document(struct store_writer *w)
{
    char sum[STORE_SUM_LINE + 1];

    begin(w, PART_ENTRIES, STR(""));
    emit(w, STR("\n" STORE_END "\n"));
    snprintf(sum, sizeof(sum), STORE_SUM_FORM, (unsigned long long)w->sum);
    emit(w, str_from(sum));
    flush(w);
}

static void step(struct store_writer *w, int rc, const char *what)
{
    if (rc != 0 && w->err.text[0] == '\0')
        err_set(&w->err, "cannot %s " FILE_NAME ": %s", what, strerror(errno));
}

static void writer_free(struct store_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    close(w->dir);
    buf_free(&w->out);
    buf_free(&w->line);
    free(w);
}

bool store_commit(struct store_writer *w, struct err *e)
{
    bool ok = false;

    end_document(w);
    if (w->err.text[0] == '\0')
        step(w, fsync(w->fd), "sync");
    step(w, close(w->fd), "close");
    w->fd = -1;
    if (w->err.text[0] == '\0')
        step(w, renameat(w->dir, TEMP_NAME, w->dir, FILE_NAME), "rename");
    if (w->err.text[0] == '\0')
        step(w, fsync(w->dir), "sync the directory of");
    ok = w->err.text[0] == '\0';
    if (!ok) {
        *e = w->err;
        unlinkat(w->dir, TEMP_NAME, 0);
    }
    writer_free(w);
    return ok;
}

void store_abort(struct store_writer *w)
{
    if (w == NULL)
        return;
    unlinkat(w->dir, TEMP_NAME, 0);
    writer_free(w);
}

bool store_writable(const char *dir, struct err *e)
{
    struct stat st;

    if (stat(dir, &st) != 0) {
        err_set(e, "%s: %s", dir, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        err_set(e, "%s is not a directory", dir);
        return false;
    }
    if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) != 0) {
        err_set(e, "%s cannot be written: %s", dir, strerror(errno));
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- reading */

static bool read_all(int fd, size_t size, struct buf *out)
{
    while (out->len <= size) {
        uint8_t *to = buf_reserve(out, size + 1 - out->len);
        ssize_t n = to != NULL ? read(fd, to, size + 1 - out->len) : -1;

        if (n == 0)
            return true;
        if (n > 0)
            buf_commit(out, (size_t)n);
        else if (to == NULL || errno != EINTR)
            return false;
    }
    return true; /* it grew meanwhile: the checksum will tell */
}

static enum store_result read_file(const char *path, struct buf *out, struct err *e)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    enum store_result result = STORE_IO;
    struct stat st = {0};

    if (fd < 0) {
        result = errno == ENOENT ? STORE_ABSENT : STORE_IO;
        err_set(e, "cannot open %s: %s", path, strerror(errno));
        return result;
    }
    if (fstat(fd, &st) != 0)
        err_set(e, "cannot look at %s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        err_set(e, "%s is not a file", path);
    else if (st.st_size > STORE_BYTES_MAX)
        err_set(e, "%s is larger than %d MiB", path, STORE_BYTES_MAX >> 20);
    else if (!read_all(fd, (size_t)st.st_size, out))
        err_set(e, "cannot read %s: %s", path, strerror(errno));
    else
        result = STORE_OK;
    close(fd);
    return result;
}

enum store_result store_load(const char *dir, struct store_reader *r, struct err *e)
{
    char path[4096];
    struct buf text;
    enum store_result result = STORE_IO;

    r->n_ignored = 0;
    if (snprintf(path, sizeof(path), "%s/" FILE_NAME, dir) >= (int)sizeof(path)) {
        err_set(e, "the name of the state directory is too long");
        return STORE_IO;
    }
    buf_init(&text, (size_t)STORE_BYTES_MAX + 1);
    result = read_file(path, &text, e);
    if (result == STORE_OK)
        result = store_read(buf_str(&text), r, e);
    buf_free(&text);
    return result;
}

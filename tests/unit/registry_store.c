#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "registry/provider.h"
#include "registry/store.h"
#include "registry/url.h"

#include "tests/unit/registry_data.h"

static char dir[] = "/tmp/registry_store.XXXXXX";
static char file[64];
static char temp[64];
static struct err e;
static struct str urls[64];
static size_t n_urls;
static struct arena a;

/* What the last read delivered, as text. */
static struct buf seen;

static void on_registry(void *ctx, const struct store_registry *r)
{
    (void)ctx;
    buf_printf(&seen, "R " STR_FMT " %lld %lld\n", STR_ARG(r->name), (long long)r->max_zxid,
               (long long)r->root_czxid);
}

static void on_entry(void *ctx, const struct store_entry *s)
{
    (void)ctx;
    buf_printf(&seen, "E " STR_FMT " ", STR_ARG(s->registry));
    refkey_print(&s->key, &seen);
    buf_printf(&seen, " %lld %llu %zu", (long long)s->czxid, (unsigned long long)s->saved_wall_ms,
               s->n_urls);
    if (s->apps.n != 0)
        buf_printf(&seen, " (" STR_FMT ")", STR_ARG(s->apps));
    for (size_t i = 0; i < s->n_urls; i++)
        buf_printf(&seen, " " STR_FMT, STR_ARG(s->urls[i]));
    buf_add_u8(&seen, '\n');
}

static void on_revision(void *ctx, const struct store_revision *v)
{
    (void)ctx;
    buf_printf(&seen, "V " STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(v->registry), STR_ARG(v->app),
               STR_ARG(v->revision));
    for (size_t i = 0; i < v->services.n; i++) {
        const struct app_service *s = &v->services.services[i];

        buf_printf(&seen, " " STR_FMT "," STR_FMT "," STR_FMT ",%u," STR_FMT, STR_ARG(s->interface),
                   STR_ARG(s->protocol), STR_ARG(s->path), (unsigned)s->port, STR_ARG(s->query));
    }
    buf_add_u8(&seen, '\n');
}

static void on_definition(void *ctx, const struct store_definition *d)
{
    (void)ctx;
    buf_printf(&seen, "D " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT "\n", STR_ARG(d->registry),
               STR_ARG(d->key.interface), STR_ARG(d->application), STR_ARG(d->text));
}

static struct store_reader reader = {.on_registry = on_registry,
                                     .on_entry = on_entry,
                                     .on_revision = on_revision,
                                     .on_definition = on_definition};

static enum store_result load(void)
{
    buf_truncate(&seen, 0);
    e.text[0] = '\0';
    return store_load(dir, &reader, &e);
}

static void keep_url(struct str node)
{
    ck_assert(url_decode_node(node, &a, &urls[n_urls++], &e));
}

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/references.json", dir);
    snprintf(temp, sizeof(temp), "%s/references.json.tmp", dir);
    buf_init(&seen, STORE_BYTES_MAX);
    arena_init(&a);
    each_node("providers.txt", keep_url);
}

static void finish(void)
{
    unlink(file);
    unlink(temp);
    ck_assert_int_eq(rmdir(dir), 0);
    buf_free(&seen);
    arena_free(&a);
}

static struct store_writer *begin(void)
{
    struct store_writer *w = store_begin(dir, &e);

    ck_assert_msg(w != NULL, "%s", e.text);
    return w;
}

static const struct store_entry order = {
    .registry = {"main", 4},
    .key = {{"reg.api.OrderService", 20}, {"1.0.0", 5}, {"g\"\\1", 4}},
    .czxid = INT64_MAX,
    .saved_wall_ms = UINT64_C(1796102785675)};

static void save(int version)
{
    struct store_writer *w = begin();
    struct store_registry r = {.name = STR("main"), .max_zxid = 4711 + version, .root_czxid = 2};
    struct store_entry s = order;

    ck_assert(store_put_registry(w, &r));
    s.urls = urls;
    s.n_urls = n_urls;
    ck_assert(store_put_entry(w, &s));
    s.key = (struct refkey){STR("a.Empty"), STR_NONE, STR_NONE};
    s.n_urls = 0;
    ck_assert(store_put_entry(w, &s));
    ck_assert_msg(store_commit(w, &e), "%s", e.text);
}

START_TEST(what_is_saved_comes_back)
{
    struct buf expected;
    struct stat st;

    start();
    ck_assert_int_eq(load(), STORE_ABSENT);
    umask(0);
    save(0);
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_ne(access(temp, F_OK), 0);
    ck_assert_msg(load() == STORE_OK, "%s", e.text);
    ck_assert_uint_eq(reader.n_ignored, 0);

    buf_init(&expected, STORE_BYTES_MAX);
    buf_printf(&expected, "R main 4711 2\nE main reg.api.OrderService:1.0.0@g\"\\1 "
                          "9223372036854775807 1796102785675 23");
    for (size_t i = 0; i < n_urls; i++)
        buf_printf(&expected, " " STR_FMT, STR_ARG(urls[i]));
    buf_printf(&expected, "\nE main a.Empty 9223372036854775807 1796102785675 0\n");
    ck_assert(str_eq(buf_str(&seen), buf_str(&expected)));
    buf_free(&expected);
    finish();
}
END_TEST

START_TEST(the_file_is_one_json_document)
{
    json_t *doc = NULL;

    start();
    save(0);
    doc = json_load_file(file, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(doc);
    ck_assert_uint_eq(json_array_size(json_object_get(doc, "references")), 2);
    json_decref(doc);
    finish();
}
END_TEST

START_TEST(an_empty_store)
{
    start();
    ck_assert(store_commit(begin(), &e));
    ck_assert_int_eq(load(), STORE_OK);
    ck_assert_uint_eq(seen.len, 0);
    finish();
}
END_TEST

static size_t read_file(char *text, size_t cap)
{
    FILE *in = fopen(file, "re");
    size_t n = 0;

    ck_assert_ptr_nonnull(in);
    n = fread(text, 1, cap, in);
    fclose(in);
    ck_assert_uint_lt(n, cap);
    return n;
}

START_TEST(no_damaged_byte_is_trusted)
{
    static char text[65536];
    size_t n = 0;

    start();
    save(0);
    n = read_file(text, sizeof(text));
    for (size_t i = 0; i < n; i++) {
        char right = text[i];

        text[i] = (char)(right ^ 1 << i % 8);
        ck_assert_msg(store_read((struct str){text, n}, &reader, &e) == STORE_DAMAGED, "byte %zu",
                      i);
        text[i] = right;
    }
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(store_read((struct str){text, i}, &reader, &e), STORE_DAMAGED);
    ck_assert_uint_eq(seen.len, 0);
    ck_assert_int_eq(store_read((struct str){text, n}, &reader, &e), STORE_OK);
    finish();
}
END_TEST

/* Hundreds of references. */
static size_t save_many(void)
{
    struct store_writer *w = begin();
    struct store_entry s = order;
    struct stat st;

    s.urls = urls;
    s.n_urls = 3;
    for (int i = 0; i < 400; i++) {
        char name[32];

        snprintf(name, sizeof(name), "demo.Service%d", i);
        s.key.interface = str_from(name);
        ck_assert(store_put_entry(w, &s));
    }
    ck_assert_msg(store_commit(w, &e), "%s", e.text);
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_int_gt(st.st_size, 30 * 4096);
    return (size_t)st.st_size;
}

static void copy_to(const char *path, const char *text, size_t n)
{
    FILE *out = fopen(path, "we");

    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, n, out), n);
    ck_assert_int_eq(fclose(out), 0);
}

/* Torn, it is refused as a whole; half written beside a whole one, it does not matter. */
static void check_cut(const char *text, size_t size, size_t cut)
{
    copy_to(file, text, cut);
    ck_assert_msg(load() == STORE_DAMAGED, "cut at %zu of %zu", cut, size);
    ck_assert_uint_eq(seen.len, 0);
    ck_assert_uint_ne(strlen(e.text), 0);
    copy_to(file, text, size);
    copy_to(temp, text, cut);
    ck_assert_msg(load() == STORE_OK, "the other one cut at %zu", cut);
    ck_assert_uint_eq(reader.n_ignored, 0);
}

/* As a full disk or a power cut leaves it: whole blocks, or all but the last bytes. */
START_TEST(cut_at_every_block)
{
    static char text[1 << 20];
    size_t size = 0;

    start();
    size = save_many();
    ck_assert_uint_eq(read_file(text, sizeof(text)), size);
    for (size_t cut = 0; cut < size; cut += 4096)
        check_cut(text, size, cut);
    for (size_t left = 1; left <= 64; left++)
        check_cut(text, size, size - left);
    save(1); /* over what is left of both */
    ck_assert_int_eq(load(), STORE_OK);
    ck_assert_int_ne(access(temp, F_OK), 0);
    finish();
}
END_TEST

/* Adds the sum that belongs to `content`. */
static enum store_result read_signed(const char *content)
{
    struct buf b;
    enum store_result result = STORE_IO;

    buf_init(&b, 65536);
    buf_truncate(&seen, 0);
    e.text[0] = '\0';
    buf_add_str(&b, str_from(content));
    buf_printf(&b, "\"sum\":\"%016llx\"}\n",
               (unsigned long long)store_sum(STORE_SUM_START, buf_str(&b)));
    result = store_read(buf_str(&b), &reader, &e);
    buf_free(&b);
    return result;
}

START_TEST(other_formats_and_strange_entries)
{
    start();
    ck_assert_int_eq(read_signed("{\"format\":2,\"saved_ms\":1,\"registries\":[\n],\n"),
                     STORE_DAMAGED);
    ck_assert_ptr_nonnull(strstr(e.text, "format 2"));
    ck_assert_int_eq(read_signed("hello\n"), STORE_DAMAGED);
    ck_assert_int_eq(read_signed(""), STORE_DAMAGED);

    ck_assert_int_eq(
        read_signed(
            "{\"format\":1,\"saved_ms\":1,\"registries\":[\n"
            "{\"name\":\"n\",\"max_zxid\":\"1\",\"root_czxid\":2},\n"
            "{\"name\":\"m\",\"max_zxid\":1,\"root_czxid\":2,\"new\":true}\n"
            "],\"references\":[\n"
            "{\"registry\":\"m\",\"reference\":\"a/b\",\"czxid\":1,\"saved_ms\":1,\"providers\":[]},\n"
            "{\"registry\":\"m\",\"reference\":\"a\",\"czxid\":1,\"saved_ms\":-1,\"providers\":[]},\n"
            "{\"registry\":\"m\",\"reference\":\"a\",\"czxid\":1,\"saved_ms\":1,\"providers\":{}},\n"
            "{\"registry\":\"m\",\"reference\":\"a\",\"czxid\":1,\"saved_ms\":1,\"providers\":[7]},\n"
            "{\"registry\":\"m\",\"reference\":\"a\",\"czxid\":1,\"saved_ms\":1,"
            "\"providers\":[\"a\\nb\"]},\n"
            "[],\n7,\n{,\n"
            "{\"registry\":\"m\",\"reference\":\"good\",\"czxid\":1,\"saved_ms\":1,"
            "\"providers\":[\"x\"]}\n"
            "],\n"),
        STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 9);
    ck_assert(buf_is(&seen, "R m 1 2\nE m good 1 1 1 x\n"));
    finish();
}
END_TEST

START_TEST(applications_and_revisions_come_back)
{
    struct app_service services[] = {
        {STR("a.B"), STR("dubbo"), STR("a.B"), 20880, STR("interface=a.B&weight=7&x=\"\\")},
        {STR("a.C"), STR("tri"), STR("c/v1"), 0, STR("interface=a.C")},
    };
    struct store_entry entry = order;
    struct store_revision v = {STR("main"), STR("app"), STR("6c7e"), {services, 2}};
    struct store_writer *w = NULL;

    start();
    entry.apps = STR("app,app-2");
    entry.n_urls = 0;
    w = begin();
    ck_assert(store_put_entry(w, &entry));
    ck_assert(store_put_revision(w, &v));
    v.revision = STR("0001");
    v.services.n = 0;
    ck_assert(store_put_revision(w, &v));
    ck_assert(store_commit(w, &e));
    ck_assert_int_eq(load(), STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 0);
    ck_assert_ptr_nonnull(strstr((const char *)(buf_add_u8(&seen, 0), seen.data),
                                 " 0 (app,app-2)\n"
                                 "V main app 6c7e a.B,dubbo,a.B,20880,interface=a.B&weight=7&x=\"\\"
                                 " a.C,tri,c/v1,0,interface=a.C\n"
                                 "V main app 0001\n"));
    finish();
}
END_TEST

START_TEST(definitions_come_back_with_revisions_and_without)
{
    static const char text[] = "{\"methods\":[{\"name\":\"m\"}],\"types\":[]}";
    struct store_revision v = {STR("main"), STR("app"), STR("6c7e"), {NULL, 0}};
    struct store_definition d = {STR("main"), order.key, STR("sh\"op"), str_from(text)};

    start();
    for (int with_revisions = 0; with_revisions < 2; with_revisions++) {
        struct store_writer *w = begin();

        ck_assert(store_put_entry(w, &order));
        ck_assert(!with_revisions || store_put_revision(w, &v));
        ck_assert(store_put_definition(w, &d));
        ck_assert(store_put_definition(w, &d));
        d.application = STR("a\nb");
        ck_assert(!store_put_definition(w, &d));
        d.application = STR("sh\"op");
        ck_assert(store_commit(w, &e));
        ck_assert_int_eq(load(), STORE_OK);
        ck_assert_uint_eq(reader.n_ignored, 0);
        buf_add_u8(&seen, 0);
        ck_assert(!with_revisions || strstr((const char *)seen.data, "\nV main app 6c7e\nD "));
        ck_assert_ptr_nonnull(strstr((const char *)seen.data,
                                     " sh\"op {\"methods\":[{\"name\":\"m\"}],\"types\":[]}\nD "));
    }
    finish();
}
END_TEST

START_TEST(definitions_that_cannot_be_are_left_out)
{
    start();
    ck_assert_int_eq(
        read_signed(
            "{\"format\":1,\"saved_ms\":1,\"registries\":[\n],\"definitions\":[\n"
            "{\"registry\":\"m\",\"reference\":\"a.B\",\"application\":\"a\"},\n"
            "{\"registry\":\"m\",\"reference\":\"a.B\",\"application\":\"a\",\"definition\":[]},\n"
            "{\"registry\":\"m\",\"reference\":\"/\",\"application\":\"a\",\"definition\":{}},\n"
            "{\"registry\":\"m\",\"reference\":\"a.B\",\"application\":7,\"definition\":{}},\n"
            "{\"registry\":\"m\",\"reference\":\"a.B\",\"application\":\"a\",\"definition\":{}}\n"
            "],\"references\":[\n" /* a part that comes too late is no part */
            "],\n"),
        STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 5);
    ck_assert(buf_is(&seen, "D m a.B a {}\n"));
    finish();
}
END_TEST

START_TEST(revisions_that_cannot_be_are_left_out)
{
    struct app_service bad = {STR("a.B"), STR("dubbo"), STR("a?b"), 1, STR("interface=a.B")};
    struct store_revision v = {STR("main"), STR("app"), STR("6c7e"), {&bad, 1}};
    struct store_writer *w = NULL;

    start();
    w = begin();
    ck_assert(!store_put_revision(w, &v));
    v.services.n = 0;
    v.app = STR("../x");
    ck_assert(!store_put_revision(w, &v));
    store_abort(w);
    ck_assert_int_eq(
        read_signed(
            "{\"format\":1,\"saved_ms\":1,\"registries\":[\n],\"references\":[\n"
            "],\"revisions\":[\n"
            "{\"registry\":\"m\",\"application\":\"a/b\",\"revision\":\"1\",\"services\":[]},\n"
            "{\"registry\":\"m\",\"application\":\"a\",\"revision\":\"..\",\"services\":[]},\n"
            "{\"registry\":\"m\",\"application\":\"a\",\"revision\":\"1\",\"services\":[[]]},\n"
            "{\"registry\":\"m\",\"application\":\"a\",\"revision\":\"1\",\"services\":["
            "[\"a\",\"dubbo\",\"a\",70000,\"\"]]},\n"
            "{\"registry\":\"m\",\"application\":\"a\",\"revision\":\"1\",\"services\":["
            "[\"b\",\"dubbo\",\"b\",1,\"x=1\"],[\"a\",\"dubbo\",\"a\",1,\"x=2\"]]}\n"
            "],\n"),
        STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 4);
    ck_assert(buf_is(&seen, "V m a 1 a,dubbo,a,1,x=2 b,dubbo,b,1,x=1\n"));
    finish();
}
END_TEST

START_TEST(what_would_not_come_back_is_not_written)
{
    struct store_writer *w = NULL;
    struct str bad = STR("a\nb");
    struct store_entry s = order;

    start();
    w = begin();
    s.urls = &bad;
    s.n_urls = 1;
    ck_assert(!store_put_entry(w, &s));
    s = order;
    s.n_urls = STORE_URLS_MAX + 1;
    ck_assert(!store_put_entry(w, &s));
    s = order;
    s.key.interface = STR("../x");
    ck_assert(!store_put_entry(w, &s));
    ck_assert(store_put_entry(w, &order));
    ck_assert(store_commit(w, &e));
    ck_assert_int_eq(load(), STORE_OK);
    ck_assert_uint_eq(reader.n_ignored, 0);
    finish();
}
END_TEST

START_TEST(size_is_bounded)
{
    static char big[URL_MAX];
    struct str many[1000];
    struct store_entry s = order;
    struct store_writer *w = NULL;
    struct stat st;
    int taken = 0;

    start();
    w = begin();
    memset(big, 'x', sizeof(big));
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = (struct str){big, sizeof(big)};
    s.urls = many;
    s.n_urls = ARRAY_LEN(many);
    while (store_put_entry(w, &s))
        taken++;
    ck_assert_int_eq(taken, 8); /* 8 x 8 MB fit into 64 MiB */
    ck_assert(store_put_entry(w, &order));
    ck_assert_msg(store_commit(w, &e), "%s", e.text);
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_int_le(st.st_size, STORE_BYTES_MAX);
    ck_assert_int_eq(truncate(file, st.st_size - 1), 0);
    ck_assert_int_eq(load(), STORE_DAMAGED); /* not larger than the reader takes */
    finish();
}
END_TEST

START_TEST(strange_files)
{
    start();
    ck_assert_int_eq(symlink("/etc/passwd", file), 0);
    ck_assert_int_eq(load(), STORE_IO);
    unlink(file);
    ck_assert_int_eq(mkfifo(file, 0600), 0);
    ck_assert_int_eq(load(), STORE_IO);
    unlink(file);
    ck_assert_int_eq(truncate(file, 0), -1);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, STORE_BYTES_MAX + 1), 0);
    ck_assert_int_eq(load(), STORE_IO);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    close(fd);
    ck_assert_int_eq(load(), STORE_DAMAGED);
    save(1); /* over a damaged one */
    ck_assert_int_eq(load(), STORE_OK);
    finish();
}
END_TEST

START_TEST(no_directory)
{
    start();
    ck_assert_ptr_null(store_begin("/nonexistent/x", &e));
    ck_assert(strstr(e.text, "/nonexistent/x") != NULL);
    ck_assert(!store_writable("/nonexistent/x", &e));
    ck_assert(!store_writable("/etc/passwd", &e));
    ck_assert(store_writable(dir, &e));
    finish();
}
END_TEST

START_TEST(abort_leaves_the_old_file)
{
    struct store_writer *w = NULL;

    start();
    save(1);
    w = begin();
    ck_assert(store_put_entry(w, &order));
    store_abort(w);
    store_abort(NULL);
    ck_assert_int_ne(access(temp, F_OK), 0);
    ck_assert_int_eq(load(), STORE_OK);
    ck_assert(str_starts(buf_str(&seen), STR("R main 4712 2\n")));
    finish();
}
END_TEST

/* Killed at any moment: the file is always a whole one, and the next save works. */
START_TEST(kill_during_saves)
{
    start();
    save(0);
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
            for (int version = 1;; version++)
                save(version);
        }
        usleep((useconds_t)(500 + i * 211));
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ck_assert_msg(load() == STORE_OK, "%s", e.text);
        ck_assert_uint_eq(reader.n_ignored, 0);
    }
    save(9);
    ck_assert_int_eq(load(), STORE_OK);
    ck_assert(str_starts(buf_str(&seen), STR("R main 4720 2\n")));
    finish();
}
END_TEST

TEST_MAIN("registry_store", cut_at_every_block, what_is_saved_comes_back,
          the_file_is_one_json_document, an_empty_store, no_damaged_byte_is_trusted,
          other_formats_and_strange_entries, applications_and_revisions_come_back,
          revisions_that_cannot_be_are_left_out, definitions_come_back_with_revisions_and_without,
          definitions_that_cannot_be_are_left_out, what_would_not_come_back_is_not_written,
          size_is_bounded, strange_files, no_directory, abort_leaves_the_old_file,
          kill_during_saves)

/* The one file that `make binary` makes: this program, then everything else behind it, packed.

   At its first start it unpacks what is behind it into a folder of the user's cache, named for what it holds; from
   then on it only steps into that folder. Unpacking at every start would cost each hook and shell call a second.

   Knows where the cache is and whether it can be trusted; does not know Python. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MARK "QUAIDBOX"
#define BLOCK (1 << 18)

/* The last bytes of the file. */
struct tail {
    uint64_t start;  /* where the packed part begins */
    uint64_t length;
    char name[32]; /* of the folder, by what it holds; no NUL at the end */
    char mark[8];
};

static int fail(const char *what, const char *where) {
    fprintf(stderr, "quaid: %s: %s%s%s. XDG_CACHE_HOME can name a folder of yours with 300 MB of room.\n", where, what,
            errno ? ": " : "", errno ? strerror(errno) : "");
    exit(5);
}

/* A folder of ours that nobody else can write to. */
static int own_folder(const char *path) {
    struct stat facts;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return 0;
    if (lstat(path, &facts) != 0) return 0;
    return S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && !(facts.st_mode & 022);
}

static int within(char *into, const char *folder, const char *name) {
    int size = snprintf(into, PATH_MAX, "%s/%s", folder, name);
    return size > 0 && size < PATH_MAX;
}

/* The cache: where the environment says, in the home, or (nobody has a home, or it cannot be written) below /tmp. */
static void find_cache(char *cache) {
    char above[PATH_MAX], last[64];
    const char *chosen = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (chosen && chosen[0] == '/' && within(cache, chosen, "quaid")) {
        mkdir(chosen, 0700);
        if (own_folder(cache)) return;
    }
    if (!home || home[0] != '/') {
        struct passwd *person = getpwuid(geteuid());
        home = person ? person->pw_dir : NULL;
    }
    if (home && home[0] == '/' && within(above, home, ".cache") && within(cache, above, "quaid")) {
        mkdir(above, 0700);
        if (own_folder(cache)) return;
    }
    snprintf(last, sizeof last, "quaid-%u", (unsigned)geteuid());
    if (within(cache, "/tmp", last) && own_folder(cache)) return;
    fail("this cache cannot be used", cache);
}

/* The packed part, read as one stream. */
struct source {
    FILE *file;
    uint64_t left;
    z_stream stream;
    unsigned char block[BLOCK];
};

static void take(struct source *from, void *into, size_t size, const char *where) {
    from->stream.next_out = into;
    from->stream.avail_out = (uInt)size;
    while (from->stream.avail_out) {
        if (!from->stream.avail_in && from->left) {
            size_t wanted = from->left < BLOCK ? (size_t)from->left : BLOCK;
            size_t got = fread(from->block, 1, wanted, from->file);
            if (!got) fail("the program is cut short; fetch it again", where);
            from->left -= got;
            from->stream.next_in = from->block;
            from->stream.avail_in = (uInt)got;
        }
        uInt before = from->stream.avail_out;
        int state = inflate(&from->stream, Z_NO_FLUSH);
        if (state == Z_STREAM_END && from->stream.avail_out) fail("the program is damaged; fetch it again", where);
        if (state != Z_OK && state != Z_STREAM_END) fail("the program is damaged; fetch it again", where);
        if (before == from->stream.avail_out && !from->stream.avail_in && !from->left)
            fail("the program is damaged; fetch it again", where);
    }
}

static uint64_t number(struct source *from, const char *where) {
    unsigned char bytes[8];
    uint64_t value = 0;
    take(from, bytes, sizeof bytes, where);
    for (int at = 7; at >= 0; at--) value = value << 8 | bytes[at];
    return value;
}

/* One file: its mode, the length of its name, its size, its name, its bytes. No name ends the list. */
static int unpack_one(struct source *from, const char *folder) {
    static unsigned char block[BLOCK];
    char name[1024], path[PATH_MAX];
    uint64_t mode = number(from, folder), length = number(from, folder), size = number(from, folder);
    if (!length) return 0;
    if (length >= sizeof name) fail("the program is damaged; fetch it again", folder);
    take(from, name, (size_t)length, folder);
    name[length] = 0;
    if (name[0] == '/' || strstr(name, "..") || !within(path, folder, name))
        fail("the program is damaged; fetch it again", folder);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST) fail("cannot be made", path);
    }
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, (mode_t)(mode & 0700));
    if (file < 0) fail("cannot be made", path);
    while (size) {
        size_t part = size < BLOCK ? (size_t)size : BLOCK;
        take(from, block, part, folder);
        for (size_t at = 0; at < part;) {
            ssize_t done = write(file, block + at, part - at);
            if (done < 0) fail("cannot be written", path);
            at += (size_t)done;
        }
        size -= part;
    }
    if (close(file) != 0) fail("cannot be written", path);
    return 1;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where) {
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

/* Everything into a folder beside its place, then to its place in one step: a start that was cut short leaves nothing
   that a later one would take for whole. */
static void unpack(FILE *program, const struct tail *tail, const char *cache, const char *place) {
    static struct source from;
    char fresh[PATH_MAX];
    errno = 0;
    if (!within(fresh, cache, ".new-XXXXXX") || !mkdtemp(fresh)) fail("cannot be made", cache);
    from.file = program;
    from.left = tail->length;
    if (inflateInit(&from.stream) != Z_OK || fseek(program, (long)tail->start, SEEK_SET) != 0)
        fail("the program cannot be read", fresh);
    while (unpack_one(&from, fresh)) {
    }
    int folder = open(fresh, O_RDONLY | O_DIRECTORY);
    if (folder < 0 || syncfs(folder) != 0) fail("cannot be written", fresh);
    close(folder);
    if (rename(fresh, place) != 0) {
        struct stat facts;
        if (lstat(place, &facts) != 0) fail("cannot be put in its place", fresh);
        nftw(fresh, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* another start was faster */
    }
}

int main(int count, char **words) {
    char self[PATH_MAX], cache[PATH_MAX], place[PATH_MAX], python[PATH_MAX], script[PATH_MAX], name[33] = {0};
    struct tail tail;
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size < 0) fail("/proc is needed to find this program", "/proc/self/exe");
    self[size] = 0;
    FILE *program = fopen(self, "rb");
    if (!program || fseek(program, -(long)sizeof tail, SEEK_END) != 0) fail("cannot be read", self);
    if (fread(&tail, sizeof tail, 1, program) != 1 || memcmp(tail.mark, MARK, sizeof tail.mark) != 0) {
        errno = 0;
        fail("nothing is packed behind this program; fetch it again", self);
    }
    memcpy(name, tail.name, sizeof tail.name);
    find_cache(cache);
    if (!within(place, cache, name)) fail("the path is too long", cache);
    struct stat facts;
    if (lstat(place, &facts) != 0) unpack(program, &tail, cache, place);
    if (!own_folder(place)) fail("belongs to somebody else", place);
    fclose(program);
    if (!within(python, place, "bin/python") || !within(script, place, "start.pyc")) fail("the path is too long", place);

    char **more = calloc((size_t)count + 6, sizeof *more);
    if (!more) fail("no memory is left", self);
    const char *called = strrchr(words[0] ? words[0] : "quaid", '/');
    int at = 0;
    more[at++] = python;
    more[at++] = "-I";
    more[at++] = script;
    more[at++] = (char *)(called ? called + 1 : words[0] ? words[0] : "quaid");
    more[at++] = self;
    for (int each = 1; each < count; each++) more[at++] = words[each];
    execv(python, more);
    fail("cannot be started", python);
}

/* The one file that `make binary` makes: this program, then everything else behind it, packed.

   At its first start it unpacks what is behind it into a folder of the user's cache, named for what it holds; from
   then on it only steps into that folder. Unpacking at every start would cost each hook and shell call a second.
   Cleaners of caches take single files out of it: it looks before it steps, and unpacks again what is not whole.

   Knows where the cache is and whether it can be trusted; box.c knows what has to be in it; neither knows Python. */

#include "box.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LONG_ENOUGH 60 /* seconds to wait for another start that unpacks */

char cache_path[PATH_MAX];
static char passed_over[4 * PATH_MAX]; /* places that are not used, and why */

static int within(char *into, const char *folder, const char *what) {
    int size = snprintf(into, PATH_MAX, "%s/%s", folder, what);
    return size > 0 && size < PATH_MAX;
}

static void pass_over(const char *path, const char *why) {
    char line[PATH_MAX + 256];
    size_t used = strlen(passed_over);
    snprintf(line, sizeof line, "  %s: %s\n", path, why);
    if (!strstr(passed_over, line)) snprintf(passed_over + used, sizeof passed_over - used, "%s", line);
}

/* --- Trust --- */

/* Many systems give everybody a group of their own name, and let it write. */
static int group_of_one(gid_t group) {
    struct passwd *person = getpwuid(geteuid());
    struct group *found = person ? getgrgid(group) : NULL;
    return found && group == person->pw_gid && !strcmp(found->gr_name, person->pw_name) && !found->gr_mem[0];
}

/* Why the folder behind a handle cannot be trusted; NULL if it can. `shared` is the one above ours, which may be
   root's, or like /tmp one in which nobody can rename what others made. */
static const char *distrust(int folder, int shared) {
    static char why[64];
    struct stat facts;
    if (fstat(folder, &facts) != 0) return strerror(errno);
    if (facts.st_uid != geteuid() && !(shared && facts.st_uid == 0)) {
        snprintf(why, sizeof why, "belongs to user %u", (unsigned)facts.st_uid);
        return why;
    }
    if (shared && facts.st_mode & S_ISVTX) return NULL;
    if (facts.st_mode & 002) return "everybody can write to it; chmod go-w helps";
    if (facts.st_mode & 020 && !(shared && group_of_one(facts.st_gid)))
        return "its group can write to it; chmod go-w helps";
    return NULL;
}

static int is_link(int from, const char *what) {
    struct stat facts;
    return fstatat(from, what, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(facts.st_mode);
}

/* A folder that nobody else can change, made if it is not there; else -1, and it is noted why. The shared one may be a
   link, for the home and the environment that name it are the user's own. */
static int trusted(int from, const char *what, const char *path, int shared) {
    int flags = FOLDER | (shared ? 0 : O_NOFOLLOW), folder = openat(from, what, flags);
    if (folder < 0 && errno == ENOENT && (mkdirat(from, what, 0700) == 0 || errno == EEXIST))
        folder = openat(from, what, flags);
    const char *why = folder >= 0 ? distrust(folder, shared) : strerror(errno);
    if (folder < 0 && !shared && is_link(from, what)) why = "is a link, and has to be a folder";
    if (!why) return folder;
    pass_over(path, why);
    if (folder >= 0) close(folder);
    return -1;
}

/* --- The box in its cache --- */

struct look {
    enum { NOTHING, BROKEN, WHOLE, SEALED } state;
    int box;
    uint64_t print;
    time_t newest;
    char why[1200];
};

/* The short look is at the folders only; the long one, at every file, takes ten times as long. */
static void look_at(int cache, struct look *look) {
    memset(look, 0, sizeof *look);
    look->box = openat(cache, box_name, FOLDER | O_NOFOLLOW);
    if (look->box < 0 && errno == ENOENT) return;
    look->state = BROKEN;
    const char *why = look->box < 0 ? "is not a folder" : distrust(look->box, 0);
    if (why) {
        snprintf(look->why, sizeof look->why, "%s", why);
        return;
    }
    look->print = fingerprint(look->box, &look->newest);
    if (look->print && sealed(look->box, look->print)) {
        look->state = SEALED;
        return;
    }
    const char *lost = missing(look->box);
    if (lost) snprintf(look->why, sizeof look->why, "%s in it is missing or was changed", lost);
    else look->state = WHOLE;
}

static void look_again(int cache, struct look *look) {
    if (look->box >= 0) close(look->box);
    look_at(cache, look);
}

/* One start unpacks, the others wait for it. If that takes too long, or there are no locks here, they unpack too: the
   last one wins, and nothing breaks. */
static int lock(int cache) {
    const struct timespec nap = {0, 20000000};
    for (int tries = 0; flock(cache, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK || tries == LONG_ENOUGH * 50) return 0;
        nanosleep(&nap, NULL);
    }
    return 1;
}

/* Unpacks if need be. 0 if this cache cannot be used. */
static int made_whole(int cache, struct look *look) {
    struct statvfs disk;
    int locked = lock(cache);
    look_again(cache, look); /* another start may have been faster */
    if (look->state >= WHOLE) return 1;
    if (fstatvfs(cache, &disk) == 0 && disk.f_flag & ST_NOEXEC) {
        pass_over(cache_path, "no program can be started from this disk (noexec)");
        return 0;
    }
    sweep(cache, locked);
    make_room(cache);
    if (look->state == BROKEN) fprintf(stderr, "quaid: %s/%s: %s; unpacking again\n", cache_path, box_name, look->why);
    if (!unpack(cache)) {
        pass_over(cache_path, strerror(errno));
        return 0;
    }
    if (passed_over[0]) fprintf(stderr, "quaid: unpacked into %s, for these are not used:\n%s", cache_path, passed_over);
    look_again(cache, look);
    if (look->state < WHOLE) fail("%s/%s was unpacked and is not whole: %s", cache_path, box_name, look->why);
    return 1;
}

/* Whether everything is in this cache now. */
static int ready(const char *above, const char *last) {
    struct look look;
    if (!within(cache_path, above, last)) return 0;
    int outer = trusted(AT_FDCWD, above, above, 1);
    int cache = outer < 0 ? -1 : trusted(outer, last, cache_path, 0);
    if (outer >= 0) close(outer);
    if (cache < 0) return 0;
    look_at(cache, &look);
    int whole = look.state >= WHOLE || made_whole(cache, &look);
    if (whole && look.state == WHOLE && flock(cache, LOCK_EX | LOCK_NB) == 0) {
        sweep(cache, 1); /* before the seal: a start that was killed while it cleared up has left none */
        put_seal(look.box, look.print, look.newest);
    }
    if (look.box >= 0) close(look.box);
    close(cache);
    return whole;
}

/* The cache: where the environment says, in the home, or (nobody has a home, or it cannot be used) below /tmp. */
static void find_cache(void) {
    char above[PATH_MAX], last[64];
    unsigned files;
    const char *chosen = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (chosen && chosen[0] == '/' && ready(chosen, "quaid")) return;
    if (!home || home[0] != '/') {
        struct passwd *person = getpwuid(geteuid());
        home = person ? person->pw_dir : NULL;
    }
    if (home && home[0] == '/' && within(above, home, ".cache") && ready(above, "quaid")) return;
    snprintf(last, sizeof last, "quaid-%u", (unsigned)geteuid());
    if (ready("/tmp", last)) return;
    fail("there is no folder to unpack into:\n%sSet XDG_CACHE_HOME to a folder of yours with room for %llu MB.",
         passed_over, (unsigned long long)box_size(&files) / 1000000 + 1);
}

int main(int count, char **words) {
    char self[PATH_MAX], box[PATH_MAX], python[PATH_MAX], script[PATH_MAX];
    mode_t mask = umask(077);
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size < 0) fail("/proc is needed to find this program: %s", strerror(errno));
    self[size] = 0;
    read_program();
    find_cache();
    umask(mask);
    if (!within(box, cache_path, box_name) || !within(python, box, "bin/python") || !within(script, box, "start.pyc"))
        fail("%s: the path is too long", cache_path);

    char **more = calloc((size_t)count + 6, sizeof *more);
    if (!more) fail("no memory is left");
    const char *called = strrchr(words[0] ? words[0] : "quaid", '/');
    int at = 0;
    more[at++] = python;
    more[at++] = "-I";
    more[at++] = script;
    more[at++] = (char *)(called ? called + 1 : words[0] ? words[0] : "quaid");
    more[at++] = self;
    for (int each = 1; each < count; each++) more[at++] = words[each];
    execv(python, more);
    fail("%s cannot be started: %s", python, strerror(errno));
}

/* The packed part behind the launcher: its list, whether a folder holds all of it, how it is unpacked.

   Works by handles in a folder that was found to be ours alone; does not know where that is, nor what the files are
   for. */

#include "box.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#define MARK "QUAIDBOX"
#define SEAL ".seal"
#define FRESH ".new-"
#define BLOCK (1 << 18)
#define LONG_AGO 3600 /* seconds after which nobody is unpacking any more */
#define SETTLED 2     /* seconds: a folder changed twice within one tick of the clock looks as if changed once */
#define DAMAGED "the program is damaged; fetch it again"

/* The last bytes of the file. */
static struct {
    uint64_t start, length; /* the packed part: the bytes of all files, one after another */
    uint64_t list, end;     /* the list of them, not packed: folders first, each before what is in it */
    uint64_t check;         /* CRC-32 of the list */
    char name[32];          /* no NUL at the end */
    char mark[8];
} tail;

struct entry {
    uint64_t mode, length, size; /* the length is that of the name with its NUL */
    const char *name;
};

char box_name[33];
static const unsigned char *program; /* the whole file, in memory */

/* What is being unpacked: it goes when that fails. */
static int fresh_in = -1;
static char fresh[64];

static void discard(int above, const char *what) {
    if (unlinkat(above, what, 0) == 0) return;
    int folder = openat(above, what, FOLDER | O_NOFOLLOW);
    DIR *list = folder < 0 ? NULL : fdopendir(folder);
    for (struct dirent *each; list && (each = readdir(list));)
        if (strcmp(each->d_name, ".") && strcmp(each->d_name, "..")) discard(folder, each->d_name);
    if (list) closedir(list);
    unlinkat(above, what, AT_REMOVEDIR);
}

void fail(const char *format, ...) {
    va_list words;
    if (fresh_in >= 0) discard(fresh_in, fresh);
    fputs("quaid: ", stderr);
    va_start(words, format);
    vfprintf(stderr, format, words);
    va_end(words);
    fputs("\n", stderr);
    exit(5);
}

/* --- The list --- */

static int next_entry(uint64_t *at, struct entry *entry) {
    if (*at == tail.end) return 0;
    if (tail.end - *at < 24) fail(DAMAGED);
    memcpy(entry, program + *at, 24);
    *at += 24;
    if (entry->length < 2 || entry->length > tail.end - *at) fail(DAMAGED);
    entry->name = (const char *)program + *at;
    *at += entry->length;
    if (entry->name[entry->length - 1] || entry->name[0] == '/' || strstr(entry->name, "..")) fail(DAMAGED);
    return 1;
}

void read_program(void) {
    struct stat facts;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &facts) != 0) fail("/proc/self/exe cannot be read: %s", strerror(errno));
    uint64_t size = (uint64_t)facts.st_size, body = size - sizeof tail;
    void *mapped = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) fail("the program cannot be read: %s", strerror(errno));
    close(file);
    program = mapped;
    memcpy(&tail, program + body, sizeof tail);
    if (memcmp(tail.mark, MARK, sizeof tail.mark)) fail("nothing is packed behind this program; fetch it again");
    if (tail.list > tail.end || tail.end > body || tail.start > body || tail.length > body - tail.start) fail(DAMAGED);
    memcpy(box_name, tail.name, sizeof tail.name);
}

static void check_list(void) {
    if (crc32(0, program + tail.list, (uInt)(tail.end - tail.list)) != tail.check) fail(DAMAGED);
}

uint64_t box_size(unsigned *files) {
    struct entry entry;
    uint64_t sum = 0;
    *files = 0;
    for (uint64_t at = tail.list; next_entry(&at, &entry); ++*files)
        sum += S_ISDIR(entry.mode) ? 4096 : (entry.size + 4095) / 4096 * 4096;
    return sum;
}

/* --- Whether a box is whole --- */

/* Whatever comes into a folder or goes out of it changes its time. Some cleaners set the other time back; this one
   cannot be set. */
uint64_t fingerprint(int box, time_t *newest) {
    struct stat facts;
    struct entry entry;
    uint64_t print = 14695981039346656037u;
    *newest = 0;
    if (fstat(box, &facts) != 0) return 0;
    for (uint64_t at = tail.list;;) {
        if (facts.st_ctim.tv_sec > *newest) *newest = facts.st_ctim.tv_sec;
        print = (print ^ (uint64_t)facts.st_ctim.tv_sec) * 1099511628211u;
        print = (print ^ (uint64_t)facts.st_ctim.tv_nsec) * 1099511628211u;
        if (!next_entry(&at, &entry) || !S_ISDIR(entry.mode)) return print | 1;
        if (fstatat(box, entry.name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    }
}

int sealed(int box, uint64_t print) {
    uint64_t kept = 0;
    int seal = openat(box, SEAL, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (seal < 0) return 0;
    ssize_t got = read(seal, &kept, sizeof kept);
    close(seal);
    return got == sizeof kept && kept == print;
}

/* Spares later starts the long look. Without a seal, or with half of one, they look: it needs no care. */
void put_seal(int box, uint64_t print, time_t newest) {
    if (newest > time(NULL) - SETTLED) return;
    int seal = openat(box, SEAL, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (seal < 0) return;
    ssize_t done = write(seal, &print, sizeof print);
    (void)done;
    close(seal);
}

const char *missing(int box) {
    struct stat facts;
    struct entry entry;
    check_list();
    for (uint64_t at = tail.list; next_entry(&at, &entry);) {
        if (fstatat(box, entry.name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return entry.name;
        if ((facts.st_mode & S_IFMT) != (entry.mode & S_IFMT) || entry.mode & 0700 & ~facts.st_mode) return entry.name;
        if (S_ISREG(entry.mode) && (uint64_t)facts.st_size != entry.size) return entry.name;
    }
    return NULL;
}

/* --- Room --- */

static uint64_t room(int cache) {
    struct statvfs disk;
    if (fstatvfs(cache, &disk) != 0 || !disk.f_blocks) return UINT64_MAX; /* it does not say */
    return (uint64_t)(geteuid() ? disk.f_bavail : disk.f_bfree) * disk.f_frsize;
}

__attribute__((noreturn)) static void no_room(int cache, int error) {
    unsigned files;
    char left[64] = "";
    if (fresh_in >= 0) discard(fresh_in, fresh);
    fresh_in = -1;
    uint64_t wanted = box_size(&files), bytes = room(cache);
    if (bytes != UINT64_MAX) snprintf(left, sizeof left, ", and %llu MB are free", (unsigned long long)bytes / 1000000);
    fail("%s: %s: unpacking needs %llu MB in %u files%s. Make room there, or set XDG_CACHE_HOME to a folder of yours "
         "on another disk.",
         cache_path, strerror(error), (unsigned long long)wanted / 1000000 + 1, files, left);
}

void make_room(int cache) {
    unsigned files;
    uint64_t wanted = box_size(&files);
    if (room(cache) < wanted) discard(cache, box_name);
    if (room(cache) < wanted) no_room(cache, ENOSPC);
}

__attribute__((noreturn)) static void not_written(int cache, const char *what) {
    if (errno == ENOSPC || errno == EDQUOT) no_room(cache, errno);
    fail("%s: %s cannot be written: %s. XDG_CACHE_HOME can name another folder of yours.", cache_path, what,
         strerror(errno));
}

/* --- Unpacking --- */

static z_stream stream; /* the packed part */

static void take(void *into, size_t size) {
    stream.next_out = into;
    stream.avail_out = (uInt)size;
    while (stream.avail_out)
        if (inflate(&stream, Z_NO_FLUSH) != Z_OK && stream.avail_out) fail(DAMAGED);
}

/* Nothing may follow, and the sum of all bytes has to be right. */
static void take_end(void) {
    unsigned char more;
    stream.next_out = &more;
    stream.avail_out = 1;
    if (inflate(&stream, Z_FINISH) != Z_STREAM_END || !stream.avail_out) fail(DAMAGED);
    inflateEnd(&stream);
}

static void unpack_file(int cache, int folder, const struct entry *entry) {
    static unsigned char block[BLOCK];
    int file = openat(folder, entry->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry->mode & 0700);
    if (file < 0) not_written(cache, entry->name);
    for (uint64_t left = entry->size; left;) {
        size_t part = left < BLOCK ? (size_t)left : BLOCK;
        take(block, part);
        left -= part;
        for (size_t at = 0; at < part;) {
            ssize_t done = write(file, block + at, part - at);
            if (done < 0) not_written(cache, entry->name);
            at += (size_t)done;
        }
    }
    if (close(file) != 0) not_written(cache, entry->name);
}

/* In the place of one that is broken, in one step too: a Quaid that runs from there finds its parts again. */
static void put_in_place(int cache) {
    char aside[80];
    if (renameat2(cache, fresh, cache, box_name, RENAME_EXCHANGE) == 0) {
        fresh_in = -1;
        discard(cache, fresh);
        return;
    }
    snprintf(aside, sizeof aside, "%s-old", fresh);
    int broken = renameat(cache, box_name, cache, aside) == 0; /* there was one, and this disk cannot exchange */
    if (renameat(cache, fresh, cache, box_name) != 0) not_written(cache, box_name);
    fresh_in = -1;
    if (broken) discard(cache, aside);
}

/* Everything into a folder beside its place, then to its place in one step: a start that was cut short leaves nothing
   that a later one would take for whole. */
int unpack(int cache) {
    struct entry entry;
    struct timespec now;
    check_list();
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(fresh, sizeof fresh, FRESH "%ld-%lx%lx", (long)getpid(), (long)now.tv_sec, (long)now.tv_nsec);
    if (mkdirat(cache, fresh, 0700) != 0) {
        if (errno == ENOSPC || errno == EDQUOT) no_room(cache, errno);
        return 0;
    }
    fresh_in = cache;
    int folder = openat(cache, fresh, FOLDER | O_NOFOLLOW);
    if (folder < 0) not_written(cache, fresh);
    flock(folder, LOCK_EX | LOCK_NB); /* tells those who sweep that somebody is at work */
    stream.next_in = (unsigned char *)program + tail.start;
    stream.avail_in = (uInt)tail.length;
    if (inflateInit(&stream) != Z_OK) fail("no memory is left");
    for (uint64_t at = tail.list; next_entry(&at, &entry);) {
        if (S_ISREG(entry.mode)) unpack_file(cache, folder, &entry);
        else if (mkdirat(folder, entry.name, 0700) != 0) not_written(cache, entry.name);
    }
    take_end();
    int seal = openat(folder, SEAL, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (seal < 0 || close(seal) != 0 || syncfs(folder) != 0) not_written(cache, fresh);
    put_in_place(cache);
    close(folder);
    return 1;
}

void sweep(int cache, int locked) {
    struct stat facts;
    int again = openat(cache, ".", FOLDER);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    for (struct dirent *each; list && (each = readdir(list));) {
        if (strncmp(each->d_name, FRESH, strlen(FRESH))) continue;
        int folder = openat(cache, each->d_name, FOLDER | O_NOFOLLOW);
        int busy = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) != 0;
        if (busy ? errno != EWOULDBLOCK : !locked) /* not every disk has locks; then age has to do */
            busy = fstatat(cache, each->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
                   facts.st_mtime > time(NULL) - LONG_AGO;
        if (!busy) discard(cache, each->d_name);
        if (folder >= 0) close(folder);
    }
    if (list) closedir(list);
}

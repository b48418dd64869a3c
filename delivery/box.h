/* What is packed behind the launcher, and the folder that it becomes. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <time.h>

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

extern char box_name[33];          /* of the folder, by what it holds */
extern char cache_path[PATH_MAX]; /* where that folder is or comes to be; told to the user */

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

void read_program(void);

/* Bytes on a disk, and files and folders. */
uint64_t box_size(unsigned *files);

/* Stands for all folders of a box as they are; 0 if one is missing. */
uint64_t fingerprint(int box, time_t *newest);
int sealed(int box, uint64_t print);
void put_seal(int box, uint64_t print, time_t newest);

/* The first thing that is missing or has another size; NULL if all is there. */
const char *missing(int box);

/* Into a cache, in the place of what is there; 0 if nothing can be made in it. */
int unpack(int cache);

/* Ends with a message unless there is room, if need be after a broken box is gone. */
void make_room(int cache);

/* What starts left behind that were killed. */
void sweep(int cache, int locked);

"""Replace folders with symlinks for a moment: `symlink_swapper.py OUTSIDE SEED FOLDER...`; ends when stdin closes.

Each folder is moved aside, a link to what is outside stands in its place for a moment, and the folder comes back.
Prints how often it did so.
"""

import os
import random
import select
import sys
import time


def main(outside: str, seed: str, *folders: str) -> None:
    chance, swaps = random.Random(seed), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        folder = chance.choice(folders)
        aside = folder + ".aside"
        try:
            os.rename(folder, aside)
            os.symlink(outside, folder)
        except OSError:  # somebody made it again in between
            put_back(folder, aside)
            continue
        time.sleep(chance.random() * 0.001)
        put_back(folder, aside)
        swaps += 1
        time.sleep(chance.random() * 0.001)
    sys.stdout.write(f"{swaps}\n")


def put_back(folder: str, aside: str) -> None:
    if os.path.islink(folder):
        os.unlink(folder)
    if os.path.isdir(aside):
        try:
            os.rename(aside, folder)
        except OSError:
            for name in os.listdir(aside):  # a folder of that name was made meanwhile
                os.replace(os.path.join(aside, name), os.path.join(folder, name))
            os.rmdir(aside)


if __name__ == "__main__":
    main(*sys.argv[1:])

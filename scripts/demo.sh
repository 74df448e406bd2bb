#!/bin/sh
# The main job, as a user would type it. Usage: scripts/demo.sh [BOARD]
set -eu
cd "$(dirname "$0")/.."
board=${1:-cortex-a53}
out=build/$(echo "$board" | tr / -)/cabin_voice
PATH=$PWD/.venv/bin:$PATH

# Shows a command as a person would type it, then runs it.
show() {
    printf '\n$'
    for word in "$@"; do
        case $word in
        *" "*) printf ' "%s"' "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}

show colibri-build -b "$board" -o "$out" --prompts examples/cabin_voice/demo_prompts.txt --verify examples/cabin_voice/model
while read -r prompt; do
    show colibri-build run "$out" -- --prompt "$prompt"
done <examples/cabin_voice/demo_prompts.txt

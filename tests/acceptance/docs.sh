#!/usr/bin/env bash
# Runs the commands of the README and of the getting-started page against a running server, in the order in which they stand
# there. Left out is what starts, kills or prepares a server. Needs the `ductor` command on the path, curl and jq.
#
#   source data/env && PATH=$PWD/.venv/bin:$PATH bash tests/acceptance/docs.sh
set -euo pipefail
: "${DUCTOR_API_KEY:?Set your ordinary tenant API key}"
: "${DUCTOR_TENANT_ID:?Set your tenant UUID}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$root/events" "$scratch"
export DUCTOR_API_URL=${DUCTOR_API_URL:-http://localhost:8080}

# blocks LANGUAGE FILE: the content of all fenced blocks of that language.
blocks() {
  awk -v fence="\`\`\`$1" '/^```/ { open = !open; wanted = open && $0 == fence; next } wanted' "$2"
}

# page NAME FILE: run the commands of a page; families get a suffix, so that the script can be repeated.
page() {
  local suffix script=$scratch/$1.sh
  suffix=$(date +%s)_$$
  echo "set -euo pipefail" >"$script"
  blocks "" "$2" | grep -vE '^(make |source |kill |sam |ductor admin bootstrap|\{"message")' |
    sed -E "s/(hello_world|first_order)(\"|\$| )/\1_$suffix\2/" >>"$script"
  (cd "$scratch" && bash "$script") || { echo "docs: the commands of $2 fail:" >&2; cat -n "$script" >&2; exit 1; }
  echo "docs: ${2#"$root"/}: ok"
}

blocks yaml "$root/README.md" | sed -E "s/(family_slug: first_order)/\1_$(date +%s)_$$/" >"$scratch/first_order.yaml"
page readme "$root/README.md"
page getting-started "$root/docs/getting-started.md"

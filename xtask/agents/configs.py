#!/usr/bin/env python3
"""Writes the agents' configs into the private HOME: configs.py AGENT…"""

import json
import os
import sys

DIR = os.environ['AGENTS_DIR']
HOME = DIR + '/home'
MOCK = 'http://127.0.0.1:' + os.environ.get('MOCK_PORT', '8787') + '/a/'


def write(path, content):
    path = os.path.join(HOME, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(content if isinstance(content, str) else json.dumps(content, indent=1) + '\n')


def cc():
    write('.claude/settings.json', {})


def pi():
    model = {
        'id': 'mock-large',
        'name': 'Mock',
        'reasoning': True,
        'input': ['text', 'image'],
        'contextWindow': 128000,
        'maxTokens': 8192,
        'cost': {'input': 1, 'output': 2, 'cacheRead': 0.1, 'cacheWrite': 1},
    }
    write(
        '.pi/agent/models.json',
        {
            'providers': {
                'mock': {'baseUrl': MOCK + 'pi/v1', 'api': 'openai-completions', 'apiKey': 'sk-test', 'models': [model]}
            }
        },
    )
    write(
        '.pi/agent/settings.json', {'compaction': {'enabled': True, 'reserveTokens': 16384, 'keepRecentTokens': 1500}}
    )


def codex():
    write(
        '.codex/config.toml',
        f'''model = "mock-large"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_context_window = 60000
model_auto_compact_token_limit = 50000

[model_providers.mock]
name = "mock"
base_url = "{MOCK}codex/v1"
env_key = "MOCK_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

[projects."{DIR}/ws/codex"]
trust_level = "trusted"

''',
    )


def opencode():
    model = {
        'name': 'mock',
        'limit': {'context': 60000, 'output': 8000},
        'attachment': True,
        'tool_call': True,
        'modalities': {'input': ['text', 'image'], 'output': ['text']},
    }
    config = {
        'autoupdate': False,
        'share': 'disabled',
        'model': 'mock/mock-large',
        'small_model': 'mock/mock-large',
        'provider': {
            'mock': {
                'npm': '@ai-sdk/openai-compatible',
                'name': 'mock',
                'models': {'mock-large': model},
                'options': {'baseURL': MOCK + 'opencode/v1', 'apiKey': 'sk-test'},
            }
        },
        'permission': {'*': 'allow'},
    }
    write('.config/opencode/opencode.json', config)


def gemini():
    config = {
        'security': {'auth': {'selectedType': 'gemini-api-key'}, 'folderTrust': {'enabled': False}},
        'privacy': {'usageStatisticsEnabled': False},
        'telemetry': {'enabled': False},
        'general': {'enableAutoUpdate': False},
        'model': {'compressionThreshold': 0.5},
    }
    write('.gemini/settings.json', config)


def qwen():
    config = {
        'security': {'auth': {'selectedType': 'openai'}},
        'privacy': {'usageStatisticsEnabled': False},
        'telemetry': {'enabled': False},
        'general': {'enableAutoUpdate': False},
    }
    write('.qwen/settings.json', config)


if __name__ == '__main__':
    for agent in sys.argv[1:]:
        {'cc': cc, 'pi': pi, 'codex': codex, 'opencode': opencode, 'gemini': gemini, 'qwen': qwen}[agent]()

"""How clients of model hubs say that the hub was not reached, and how that it was and refused."""

from __future__ import annotations

import re

HTTP = re.compile(r"/(?:httpx|httpcore|urllib3|requests|aiohttp)\d?/|/http/client\.py|/urllib/request\.py")
HUB = re.compile(
    r"/huggingface_hub/|/transformers/utils/hub\.py|/datasets/(?:load|utils/file_utils|download)|/torch/hub\.py|/modelscope/|/timm/models/_hub|/kagglehub/"
)
HOSTS = r"(?:[\w-]{1,40}\.){0,4}(?:huggingface\.co|hf\.co|hf-mirror\.com|modelscope\.cn|download\.pytorch\.org|githubusercontent\.com|kaggle\.com)"
TROUBLE = (
    r"(?:ConnectionError|ConnectTimeout\w*|ReadTimeout\w*|ProxyError|SSL\w{0,6}Error|URLError|ConnectError|RemoteDisconnected|NewConnectionError|NameResolutionError"
    r"|ChunkedEncodingError|IncompleteRead|Max retries exceeded|[Tt]imed out|Network is unreachable|Name or service not known|Connection reset|Temporary failure|UnsupportedProtocol|InvalidURL|InvalidSchema)"
)
# transformers 4 and 5, huggingface_hub 0.8 to 2, datasets 1 to 5, requests, httpx and urllib; the hub's 429 and 5xx.
WORDING = (
    rf"We couldn't connect to 'https?://|{HOSTS}.{{0,400}}{TROUBLE}|{TROUBLE}.{{0,400}}{HOSTS}|LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't reach the Hub"
    r"|Couldn't reach (?:the Hugging Face Hub|'.{1,200}' on the Hub|https?://)|[Cc]annot reach (?:the Hub|https?://)|cannot find the requested files in the (?:local|disk) cache"
    r"|outgoing traffic has been disabled|[Oo]ffline mode is enabled|Connection error, and we cannot find the requested files"
    rf"|(?:429 (?:Client Error|Too Many Requests)|50[0234] Server Error).{{0,300}}{HOSTS}"
)
REFUSED = (
    r"is not a local folder and is not a valid model identifier|Repository Not Found for url|access (?:a )?gated repo|RepositoryNotFoundError|GatedRepoError"
    rf"|DatasetNotFoundError|RevisionNotFoundError|EntryNotFoundError: 404|40[134] Client Error.{{0,300}}{HOSTS}"
)

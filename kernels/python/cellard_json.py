"""How messages become JSON, whatever a cell put into them."""

import codecs
import json

try:
    from jupyter_client.jsonutil import json_clean, json_default
except ImportError:  # jupyter_client before 7
    from ipykernel.jsonutil import json_clean
    from jupyter_client.jsonutil import date_default as json_default


def pack(message):
    """The JSON text of a part of a message, as UTF-8.

    jupyter_client's own encoding fails on a lone surrogate, and with it all the
    output around it is lost, or makes bytes of it that aren't UTF-8. Here it is
    shown as the backslash escape that Python itself shows on stderr.
    """
    try:
        text = json.dumps(message, default=json_default, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        # What isn't JSON: NaN, keys that aren't strings, a cell's own objects.
        text = json.dumps(json_clean(message), default=json_default, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "cellard_surrogates")


def _escape(error):
    # Inside a JSON string the backslash itself has to be escaped.
    lone = error.object[error.start : error.end]
    return "".join(f"\\\\u{ord(char):04x}" for char in lone), error.end


codecs.register_error("cellard_surrogates", _escape)

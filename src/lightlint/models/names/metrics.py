"""What the names of metrics say about them."""

from __future__ import annotations

import re

_MORE = re.compile(
    r"(?:acc|accuracy|accuracies|acc@?\d+|top@?\d+|f1|f1score|fscore|auc|auroc|auprc|iou|miou|jaccard|dice|psnr|ssim|bleu\d?|rouge\w?|recall|precision"
    r"|kappa|mcc|mAP|map@?50|map@?50@?95)$"
)
_LESS = re.compile(r"(?:loss|losses|error|err|perplexity|ppl|mse|rmse|mae|wer|cer|nll|fid|lpips)$")
_TURNED = re.compile(
    r"(?:neg|negative|minus|inv|inverse|inverted|not|one|1|reverse|complement|distance|dist|gap|diff|drop|free|without|reduction|improvement)$"
)


def direction(key: str) -> str:
    """'max' or 'min' where the words of a metric's name agree on it, else empty; a loss or an error is one whatever it is made of."""
    words = [word for word in re.split(r"[_/.\s:-]+|(?<=[a-z])(?=[A-Z][a-z])", key) if word]
    lower = [word if word == "mAP" else word.lower() for word in words]
    more, less = ([bool(pattern.match(word)) for word in lower] for pattern in (_MORE, _LESS))
    if any(_TURNED.match(word) for word in lower) or (any(more) and any(less) and not less[-1]):
        return ""
    return "min" if any(less) else "max" if any(more) else ""

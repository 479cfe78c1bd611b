from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import Kind

_SPLIT = "sklearn.model_selection.train_test_split"
# what learns numbers from all rows and gives each row back changed by them
_FITTED = ("sklearn.preprocessing.", "sklearn.decomposition.", "sklearn.impute.", "sklearn.feature_selection.")
_HARMLESS = {"LabelEncoder", "LabelBinarizer", "OneHotEncoder", "OrdinalEncoder", "MultiLabelBinarizer", "Normalizer"}
_ADDING = ("imblearn.over_sampling.", "imblearn.combine.")


class FittedBeforeSplit(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != _SPLIT:
            return
        for arg in call.args[:1]:
            made = self._fitted(arg.value, 0) if not arg.star and arg.keyword is None else None
            if made is not None:
                self.report(
                    made,
                    f"`{self.code.text_of(made.func)}` sees the rows that `train_test_split` sets aside: they are no test any more",
                )

    def _fitted(self, value: cst.BaseExpression, depth: int) -> cst.Call | None:
        """The call that fits and transforms all rows at once, through names."""
        if depth > 3:
            return None
        if isinstance(value, cst.Name):
            found = self.facts.reaching.bindings(value)
            if len(found) != 1 or found[0].kind is not Kind.ASSIGN or found[0].value is None:
                return None
            if found[0].path:
                return found[0].value if found[0].path == (0,) and self._adds(found[0].value) else None  # type: ignore[return-value]
            return self._fitted(found[0].value, depth + 1)
        if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
            return None
        if value.func.attr.value in {"astype", "reshape", "to_numpy", "float"}:
            return self._fitted(value.func.value, depth + 1)
        if value.func.attr.value != "fit_transform":
            return None
        return value if self._is(value.func.value, _FITTED) else None

    def _adds(self, value: cst.BaseExpression) -> bool:
        """`X, y = SMOTE().fit_resample(X, y)`."""
        func = value.func if isinstance(value, cst.Call) else None
        return isinstance(func, cst.Attribute) and func.attr.value == "fit_resample" and self._is(func.value, _ADDING)

    def _is(self, receiver: cst.BaseExpression, rooms: tuple[str, ...]) -> bool:
        origins = self.values.origins(receiver)
        return bool(origins) and all(
            each.name.startswith(rooms) and each.name.rpartition(".")[2] not in _HARMLESS for each in origins
        )

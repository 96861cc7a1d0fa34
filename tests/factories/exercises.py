"""A lesson with an exercise, a quiz, and predictions, in two languages, for tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.factories.lesson_source import FRONT_MATTER, write_lesson, write_toml

SECRETS = (
    "SOLVED_BY_THE_AUTHOR",
    "Solved as the author did",
    "feedback-only-for-answers",
    "41.0625",
    "2.375%",
    "it prints {number}",
    "expected-of-the-solution",
    "only-wrong-answers-say-this",
    "This is the sum, not the mean",
    "합계입니다",
)
"""What no page, export, or search result may hold before the learner may see it."""

BODY = """\
```{code-cell} python
:name: make-data

DATA = [1.0, 2.0, 6.0]
```

```{exercise} Write the *mean*
:label: mean

Divide by the number of examples, as in $x / n$.
```

```{code-cell} python
:name: mean
:caption: Your turn
:tags: [exercise]
:needs: [make-data]
:topology: cpu
:seconds: 20
:xp: 25
:expect: expected-of-the-solution

def mean(values):
    ### BEGIN SOLUTION
    #: # Divide by what?
    #: return sum(values)
    SOLVED_BY_THE_AUTHOR = len(values)
    print("expected-of-the-solution")
    return sum(values) / SOLVED_BY_THE_AUTHOR
    ### END SOLUTION


print(mean(DATA))
```

```{solution} mean
Solved as the author did: **divide**.
```

````{quiz} What *divides*?
:name: what-divides

Think of a batch.

```python
batch = 4
```

- [ ] The number of replicas

  feedback-only-for-answers: replicas.
- [x] The number of `examples`

  feedback-only-for-answers: right.
````

```{predict} Which number?
:name: which-number
:cell: last
:answer: 41.0625
:tolerance: 2.375%
:unit: ms
```

```{predict} What does it print?
:name: printed
:cell: last
:from: 'it prints {number}'
```

```{predict} What comes first?
:name: order
:cell: last

1. Forward
2. Backward
3. All-reduce
```

```{predict} Which one?
:name: choice
:cell: last
:from: it prints

- [ ] This

  feedback-only-for-answers: this.
- [x] That
```

```{code-cell} python
:name: last

print("it prints", 7)
```
"""

KOREAN = """\
```{code-cell} python
:name: make-data
```

```{exercise} *평균*을 쓰세요
:label: mean

나누세요.
```

```{code-cell} python
:name: mean
:caption: 여러분 차례
```

```{solution} mean
Solved as the author did: 나눕니다.
```

```{quiz} 무엇으로 나눌까요?
:name: what-divides

- [ ] 복제본 수

  feedback-only-for-answers: 복제본.
- [x] 예제 수
```

```{predict} 어느 수일까요?
:name: which-number
:cell: last
:unit: 밀리초
```

```{predict} 무엇을 출력할까요?
:name: printed
:cell: last
:from: 'it prints {number}'
```

```{predict} 무엇이 먼저일까요?
:name: order
:cell: last

1. 순전파
2. 역전파
3. 올리듀스
```

```{predict} 어느 것일까요?
:name: choice
:cell: last

- [ ] 이것
- [x] 저것
```

```{code-cell} python
:name: last
```
"""

CHECKS = '''\
"""Judges the mean."""

from runners.checks import Work, check, close, fail


@check("mean", "It is the mean", xp=15, hints=["Divide by what?", "By the number of values."])
def is_the_mean(work: Work) -> None:
    values = work.rng.normal(size=8).tolist()
    close(
        work.call("mean", values),
        work.reference("mean", values),
        mistakes={"This is the sum, not the mean.": sum(values)},
    )


@check("mean", "It takes one value")
def takes_one(work: Work) -> None:
    if work.call("mean", [3.0]) != 3.0:
        fail("The mean of one value is that value.")
'''

WRONG = """\
# diagnosis: the sum, not the mean
def mean(values):
    only_wrong = 'only-wrong-answers-say-this'
    return sum(values)
"""
KOREAN_CHECKS = """\
"It is the mean" = "평균입니다"
"Divide by what?" = "무엇으로 나눌까요?"
"By the number of values." = "값의 수로."
"This is the sum, not the mean." = "평균이 아니라 합계입니다."
"It takes one value" = "값 하나를 받습니다"
"The mean of one value is that value." = "값 하나의 평균은 그 값입니다."
"""


def write_exercise_lesson(root: Path, slug: str = "one") -> Path:
    """Write a course with only this lesson, and return the lesson's folder."""
    folder = write_toml(root, slug) / slug
    write_lesson(folder, BODY, header=FRONT_MATTER + "topology: cpu\n")
    write_lesson(folder, KOREAN, name="lesson.ko.md", header="title: 수업\nsummary: 가르칩니다.\n")
    (folder / "checks.py").write_text(CHECKS, encoding="utf-8")
    (folder / "checks.ko.toml").write_text(KOREAN_CHECKS, encoding="utf-8")
    (folder / "wrong").mkdir(exist_ok=True)
    (folder / "wrong" / "mean--sum.py").write_text(WRONG, encoding="utf-8")
    return folder


GUIDE = Path(__file__).parents[2] / "docs" / "teach" / "exercises.md"
_GUIDE_FILE = re.compile(r"^(`{3,})\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def write_guide_lesson(root: Path) -> Path:
    """Write the lesson that the guide for authors has its readers write, and return its folder."""
    folder = root / "my-course" / "averages"
    (folder / "wrong").mkdir(parents=True)
    for _, name, text in _GUIDE_FILE.findall(GUIDE.read_text(encoding="utf-8")):
        (folder.parent / name if name == "course.toml" else folder / name).write_text(text, encoding="utf-8")
    return folder

"""The report as a browser shows it: at three widths, in both schemes, by keyboard, on paper."""

BOXES = """() => {
  // Every line of text with the box that it fills, and the boxes that may cut it off.
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest('style,title,desc')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      found.push({text: node.textContent.trim().slice(0, 40), left: box.left, right: box.right,
                  top: box.top + scrollY, bottom: box.bottom + scrollY,
                  size: parseFloat(getComputedStyle(parent).fontSize),
                  drawn: !!parent.closest('svg')});
    }
  }
  return found;
}"""
SMALLEST = 11.5
"""Pixels of the smallest text."""


def test_a_weak_bound_has_no_tick(shown):
    if shown.name == "few":
        boxes = shown.locator(".bound")
        assert boxes.count() == 2
        assert "vacuous" in boxes.nth(0).inner_text()
        assert "✓" not in boxes.nth(0).inner_text()


def overlap(a, b):
    """By how much two boxes overlap in both directions; lines of text have room above and below."""
    across = min(a["right"], b["right"]) - max(a["left"], b["left"])
    shrink = 0.18
    tall = [(one["bottom"] - one["top"]) * shrink for one in (a, b)]
    down = min(a["bottom"] - tall[0], b["bottom"] - tall[1]) - max(
        a["top"] + tall[0], b["top"] + tall[1]
    )
    return across > 1 and down > 1


def test_nothing_is_wider_than_the_window(shown):
    assert shown.evaluate("document.documentElement.scrollWidth") <= shown.width
    wide = shown.evaluate(
        "[...document.querySelectorAll('.table')].filter(e => e.scrollWidth > e.clientWidth)"
        ".map(e => e.innerText.slice(0, 60))"
    )
    assert not wide


def test_no_text_is_cut_off_or_too_small(shown):
    for box in shown.evaluate(BOXES):
        assert box["left"] >= -0.5, box
        assert box["right"] <= shown.width + 0.5, box
        assert box["size"] >= SMALLEST, box


def test_no_text_lies_on_other_text(shown):
    boxes = sorted(shown.evaluate(BOXES), key=lambda box: box["top"])
    assert len(boxes) > 40
    clashes = []
    for index, box in enumerate(boxes):
        for other in boxes[index + 1 :]:
            if other["top"] > box["bottom"]:
                break
            if overlap(box, other):
                clashes.append((box["text"], other["text"]))
    assert not clashes


def test_nothing_is_asked_for_and_nothing_complained_about(shown):
    assert len(shown.asked) == 1
    assert shown.asked[0].startswith("file:")
    assert not shown.complaints


def test_no_script_ran_and_every_name_is_shown(shown):
    assert shown.title() != "x"
    if shown.name == "hostile":
        text = shown.inner_text("main")
        for word in ("<script>document.title='x'</script>", "שלום עולם", "🦊"):
            assert word in text


def test_the_scheme_is_followed(shown):
    colour = shown.evaluate("getComputedStyle(document.querySelector('.jm')).backgroundColor")
    levels = [int(part) for part in colour.strip("rgb()").split(",")[:3]]
    assert (sum(levels) / 3 < 100) == (shown.scheme == "dark")


def test_everything_has_an_accessible_name(shown):
    tree = shown.locator("body").aria_snapshot()
    pictures = shown.locator("svg[role=img]")
    assert pictures.count() >= 1
    for index in range(pictures.count()):
        label = pictures.nth(index).evaluate(
            "e => e.getAttribute('aria-labelledby').split(' ')"
            ".map(i => document.getElementById(i).textContent).join(' ')"
        )
        assert len(label) > 20
    assert tree.count("- table") >= 2
    unnamed = [
        line for line in tree.splitlines() if line.strip() in ("- table:", "- img", "- link")
    ]
    assert not unnamed
    if shown.name != "notebook":
        for landmark in ("banner", "navigation", "main", "contentinfo"):
            assert shown.get_by_role(landmark).count() == 1


def test_the_keyboard_reaches_every_section(shown):
    if shown.name == "notebook":
        return
    links = shown.locator("nav a")
    for index in range(links.count()):
        shown.keyboard.press("Tab")
        target = shown.evaluate("document.activeElement.getAttribute('href')")
        assert target == links.nth(index).get_attribute("href")
        assert shown.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    shown.keyboard.press("Enter")
    shown.wait_for_function("target => location.hash === target", arg=target)
    assert shown.locator(target).is_visible()


def test_a_picture_fills_its_place(shown):
    sizes = shown.evaluate(
        "[...document.querySelectorAll('svg[role=img]')].map(e => [e.clientWidth,"
        " e.parentElement.clientWidth])"
    )
    for across, room in sizes:
        assert across > 0.5 * room


def test_it_prints(shown):
    paper = shown.pdf(format="A4", print_background=False)
    assert paper.startswith(b"%PDF")
    assert len(paper) > 10_000
    shown.emulate_media(media="print")
    colour = shown.evaluate("getComputedStyle(document.querySelector('.jm')).color")
    levels = [int(part) for part in colour.strip("rgb()").split(",")[:3]]
    assert sum(levels) / 3 < 100  # dark ink, whatever the scheme


def test_the_policy_is_a_table_whose_rows_can_be_chosen_by_action(shown):
    """By style alone: the page runs no script. Rows that are folded away are chosen too."""
    if shown.name in ("queues", "notebook"):  # too large to list, and brief
        assert shown.locator("#policy").count() == 0
        return
    shown.emulate_media(media="screen")
    rows = shown.locator("#policy .choice")
    choice = shown.get_by_role("combobox", name="Show")
    words = choice.locator("option").nth(1).inner_text()
    choice.select_option(label=words)
    left = [row for row in rows.all() if row.is_visible()]
    assert 0 < len(left) < rows.count()
    name, _, count = words.rpartition(" (")
    assert len(left) == int(count.rstrip(")"))
    assert all(row.locator("td bdi").first.inner_text() == name for row in left[:5])
    choice.select_option(value="")
    assert rows.last.is_visible()


def test_formulas_are_folded_away_and_open_by_keyboard(shown):
    """The last one here, because the others look at everything, opened."""
    shown.emulate_media(media="screen")
    shown.reload()
    folded = shown.locator("details:has(code)").first
    formula = folded.locator("code").first
    assert not formula.is_visible()
    folded.locator("summary").focus()
    shown.keyboard.press("Enter")
    assert formula.is_visible()

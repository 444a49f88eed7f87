"""What visitors ask about this site itself: help prints the answers, and the search finds them."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.access.selectors import permissions
from runs.compare.selectors.describe import verdict_words
from runs.shared import reading


@dataclass(frozen=True)
class Link:
    """Where an answer goes on, by the name of its address. `acts`: not everybody may go there."""

    text: str
    name: str
    acts: bool = False

    @property
    def address(self) -> str:
        """Its path."""
        return reverse(self.name)


@dataclass(frozen=True)
class SiteQuestion:
    """A question in the reader's language. `slug` is its place on the page of help.

    `words` are those by which a search finds it, in English and Japanese.
    """

    slug: str
    question: str
    sentences: tuple[str, ...]
    words: frozenset[str]
    links: tuple[Link, ...] = ()

    def links_for(self, user: User | AnonymousUser) -> list[Link]:
        """Those that lead somewhere for this reader."""
        return [
            link
            for link in self.links
            if not link.acts or permissions.is_offered(user, link.name)
        ]

    @property
    def address(self) -> str:
        """The path of its answer."""
        return f"{reverse('help')}#{self.slug}"


def _question(
    slug: str,
    question: str,
    sentences: Iterable[str],
    words: str,
    *links: Link,
) -> SiteQuestion:
    return SiteQuestion(
        slug, question, tuple(sentences), frozenset(words.split()), links
    )


def site_questions() -> list[SiteQuestion]:
    """All questions about this site, in the order of the page."""
    return [
        *_list_site_questions(),
        *_list_verdict_questions(),
        *_list_measuring_questions(),
    ]


def _list_site_questions() -> list[SiteQuestion]:
    operator, licence = settings.OPERATOR, settings.DATA_LICENCE
    return [
        _question(
            "about",
            _("What is this site?"),
            [
                _(
                    "It keeps published benchmarks of PostgreSQL with their sources, measures on "
                    "its own servers, and judges what CI jobs upload."
                ),
                _("Each answer says how sure it is, and on what it rests."),
            ],
            "about site benchlab purpose introduction サイト",
            Link(_("Topics"), "topic-list"),
        ),
        _question(
            "operator",
            _("Who runs this site, and who pays for it?"),
            [
                operator or _("Its operator has not named itself here yet."),
                _(
                    "Publications keep the names of their authors; what was measured here says on "
                    "which machine, and who queued it."
                ),
            ],
            "who runs this site operator operates owner pays paid sponsor contact independent "
            "imprint 運営 運営者",
        ),
        _question(
            "licence",
            _("May I use and cite the figures?"),
            [
                _(
                    "The page of a publication says under which licence its figures are, or that "
                    "it states none, and how to cite it (BibTeX, CSL)."
                ),
                licence
                or _(
                    "For what was measured here the operator has named no licence yet: ask before "
                    "you print it."
                ),
            ],
            "licence license copyright cite citation use reuse figures data print ライセンス 引用",
            Link(_("Publications"), "archive"),
        ),
        _question(
            "who",
            _("Who sees what?"),
            [
                _(
                    "What belongs to a public project, or to none, is seen by everybody who "
                    "reaches this site."
                ),
                _(
                    "What belongs to a private project is seen by its members alone, on pages, in "
                    "searches, files, feeds and the API."
                ),
                _(
                    "Loads of your own are seen by members alone, also in a public project."
                ),
            ],
            "who sees see private public members rights permission visible 権限",
        ),
    ]


def _list_verdict_questions() -> list[SiteQuestion]:
    rates = verdict_words.rates_of("few_jobs")
    return [
        _question(
            "sure",
            _("How sure is a verdict?"),
            [
                _(
                    "Faster and slower are said only where the interval excludes that nothing "
                    "changed; the intervals of a table hold together, in 95 of 100 tables."
                ),
                _(
                    "The same means that the interval lies within 3 %. Everything else is "
                    "undecided: that is no evidence for “the same”."
                ),
                _(
                    "Printed figures without their spread are shown as printed, and not tested."
                ),
            ],
            "sure verdict verdicts certain confidence reliable significance same undecided 判定",
        ),
        _question(
            "intervals",
            _("How is an interval computed?"),
            [
                _(
                    "From how the repeats of each cell scatter: ratios are compared on "
                    "logarithms, and the scatter of all cells of a table is pooled (Student's "
                    "t)."
                ),
                _(
                    "Where jobs or rounds move all of their runs, that scatter counts and not "
                    "the one within. The formulas, and their error rates, are in "
                    "docs/statistics.md of BenchLab's source."
                ),
            ],
            "interval intervals computed compute calculated formula method statistics "
            "statistical test uncertainty "
            "confidence error 区間 統計",
        ),
        _question(
            "false-alarms",
            _("How often is a red build wrong?"),
            [
                _(
                    "Seldom: on histories of public projects, between commits of which nothing "
                    "lasting changed, %(low).1f to %(high).1f %% of comparisons with few jobs "
                    "called something slower or faster."
                )
                % {"low": 100 * min(rates), "high": 100 * max(rates)},
                _(
                    "Each verdict names the rate of its own kind. If you do not believe one, run "
                    "the job once more: the second job counts with the first."
                ),
            ],
            "false alarm alarms positive positives red build builds wrong often rate ci 誤報",
            Link(_("Changes"), "change-list"),
        ),
        _question(
            "threshold",
            _("How does a pull request fail at a loss?"),
            [
                _(
                    "The line benchlab-upload --compare main ends with 1 where a figure is "
                    "slower, which fails the job; with 2 where it is undecided and suspicious, "
                    "and with 0 otherwise."
                ),
                _(
                    "--effect 5 ignores losses below 5 % (3 % without it), --metric chooses what "
                    "decides, and --strict ends with 2 wherever it is open."
                ),
                _("The page of tokens has the whole step to copy."),
            ],
            "exit code threshold gate fail fails pull request ci effect strict loss percent "
            "limit github gitlab しきい値",
            Link(_("API tokens"), "token-list"),
        ),
        _question(
            "fixed",
            _("Is a regression gone since?"),
            [
                _(
                    "The history of its campaign draws every commit since: a later step back is "
                    "marked there and stands in Changes as faster. Until then what follows is "
                    "as slow as the commit that is named."
                ),
                _(
                    "A step that later runs no longer show is taken back by itself, and says so."
                ),
            ],
            "fixed fix gone solved repaired recovered still since regression back 解消",
            Link(_("Changes"), "change-list"),
        ),
        _question(
            "accept",
            _("How is a known regression marked?"),
            [
                _(
                    "By its decision on Changes. Confirmed: it is real, and what follows is "
                    "judged by the new level. Dismissed: it is none, and the level before goes "
                    "on."
                ),
                _("Members of the project who may upload decide; a note says why."),
            ],
            "accept accepted known regression mark mark expected intended acknowledge ignore",
            Link(_("Changes"), "change-list"),
        ),
    ]


def _list_measuring_questions() -> list[SiteQuestion]:
    return [
        _question(
            "version",
            _("Which version should I take?"),
            [
                _(
                    "Look at the steps from your version to the newest for a load like yours: "
                    "each says by how much, how surely, and who measured it."
                ),
                _(
                    "Where the steps differ by load, or nobody has measured one, measure your own "
                    "statements on all versions."
                ),
            ],
            "version versions take choose best recommend recommended upgrade should 推奨",
            Link(_("Versions"), "versions"),
            Link(_("Bring your load"), "load-new", acts=True),
        ),
        _question(
            "noise",
            _("How small a difference can be seen here?"),
            [
                _(
                    "Each server's page says by how much two equal series differ there by chance: "
                    "of whole runs, and of slices in turn, which show smaller differences. A form "
                    "says the same before anything is queued."
                ),
                _("What is smaller is called undecided; more rounds narrow it."),
            ],
            "noise noisy floor small smallest least difference differences detect detected "
            "resolution see seen precision minimum variance scatter ノイズ 精度",
            Link(_("Servers"), "server-list"),
        ),
        _question(
            "machines",
            _("On what machines was it measured?"),
            [
                _(
                    "The list of hardware has every machine, with its processor, memory, disks "
                    "and operating system, and who measured on it; each campaign and each "
                    "publication leads to its own."
                )
            ],
            "machine machines hardware cpu processor memory ram disk disks spec specs server "
            "report reports measured operating system ハードウェア マシン",
            Link(_("Hardware"), "hardware-list"),
        ),
        _question(
            "duration",
            _("How long does a measurement take?"),
            [
                _(
                    "A form says it before anything is queued: the seconds of all runs, and what "
                    "loading and warming take."
                ),
                _(
                    "A first campaign of two versions answers within two minutes; a published "
                    "procedure may take a day, and offers a quick form beside."
                ),
            ],
            "long duration time take takes minutes hours measurement campaign run quick quickly "
            "estimate 時間",
            Link(_("New campaign"), "campaign-new", acts=True),
        ),
        _question(
            "room",
            _("How much room is left, and what is kept?"),
            [
                _(
                    "A server's page says how much of its disk is free, beside its queue."
                ),
                _(
                    "The operator saves the results database. Figures of runs stay; their files, "
                    "and runs that failed, go only by rules that the operator has set."
                ),
            ],
            "disk room space left free full storage backup backups back up restore saved kept "
            "retention 容量 バックアップ",
            Link(_("Servers"), "server-list"),
        ),
        _question(
            "upload",
            _("How do I upload my own results?"),
            [
                _(
                    "By hand: paste what pgbench or another tool printed; it is recognised. "
                    "From a script or CI: one line of benchlab-upload, with a token."
                ),
                _("It reads what these print: %(tools)s; or JSON of your own.")
                % {"tools": ", ".join(reading.tools().values())},
                _("Both need an account that may upload; a maintainer invites you."),
            ],
            "upload uploads results own result send import token ci account format formats tool "
            "tools json アップロード",
            Link(_("Upload"), "upload-new", acts=True),
            Link(_("API tokens"), "token-list"),
        ),
        _question(
            "told",
            _("How am I told of a change?"),
            [
                _(
                    "By mail to the members of a project, by its webhooks (Slack, Teams, "
                    "Mattermost, Discord, or JSON), by its feed, and by the comment in a pull "
                    "request."
                ),
                _(
                    "A badge for a README says how the newest commit of a branch differs from "
                    "those before it, and is red while a regression is open: "
                    "/campaigns/NAME/badge.svg."
                ),
            ],
            "told notify notified notification alert mail webhook webhooks slack teams discord "
            "mattermost feed badge readme status 通知",
            Link(_("Projects"), "project-list"),
        ),
        _question(
            "data",
            _("How do I take the figures away?"),
            [
                _(
                    "At the end of each campaign's page: CSV, JSON and more; a comparison has a "
                    "report as well, and below each chart stands its picture."
                ),
                _("An administrator exports a whole project, or all runs as Parquet."),
            ],
            "export data download csv json parquet figures raw take away picture svg png データ",
        ),
        _question(
            "slices",
            _("What are slices in turn?"),
            [
                _(
                    "All servers of a campaign are up at once, and each is measured for a second "
                    "or a few in a drawn order, round after round. What disturbs the machine meets "
                    "all alike, so that smaller differences are seen than by whole runs."
                )
            ],
            "slice slices turn turns round rounds interleaved order drawn",
        ),
        _question(
            "cancel",
            _("How is a run cancelled, and who may?"),
            [
                _(
                    "By the button on its page while it waits or is measured: that takes one "
                    "repeat out of one cell. A campaign has a button of its own, which ends "
                    "all that waits."
                ),
                _(
                    "Operators and maintainers of its project may. What was measured stays."
                ),
            ],
            "cancel cancelled stop abort run campaign end measurement running 中止",
            Link(_("Runs"), "run-list"),
        ),
        _question(
            "api",
            _("Is there an API?"),
            [
                _(
                    "All that pages show can be read as JSON without an account, as far as it "
                    "is public; there are feeds, a client for CI, and readers for notebooks "
                    "and agents."
                )
            ],
            "api json rest program openapi schema notebook pandas mcp agent feed",
            Link(_("API"), "api:docs"),
        ),
    ]


def matching(words: Iterable[str]) -> list[SiteQuestion]:
    """The questions that have all of these words, else those that have most of them.

    At least half of the words, so that a question about PostgreSQL finds none.
    """
    words_asked = {word.rstrip("?.,!") for word in words}
    if not words_asked:
        return []
    counted = [
        (len(words_asked & question.words), question) for question in site_questions()
    ]
    most = max(number for number, _question in counted)
    if not most or 2 * most < len(words_asked):
        return []
    return [question for number, question in counted if number == most]

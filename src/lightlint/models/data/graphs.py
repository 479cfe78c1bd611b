"""Data sets of one graph: a loader gives all of it as the only batch of an epoch."""

from __future__ import annotations

from lightlint.engine.machine import Machine
from lightlint.values.core import Sequence, Unknown, Value, is_constant
from lightlint.values.training import Loader

_ONE = "one graph"
_OF_ONE = {
    "torch_geometric": frozenset(
        (
            *("AMiner", "Actor", "Airports", "Amazon", "AmazonBook", "AmazonProducts", "AttributedGraphDataset"),
            *("CitationFull", "Coauthor", "CoraFull", "DBLP", "DGraphFin", "DeezerEurope", "EllipticBitcoinDataset"),
            *(
                "EmailEUCore",
                "FB15k_237",
                "FacebookPagePage",
                "Flickr",
                "GitHub",
                "HGBDataset",
                "HeterophilousGraphDataset",
            ),
            *(
                "IMDB",
                "KarateClub",
                "LastFM",
                "LastFMAsia",
                "LINKXDataset",
                "MovieLens",
                "MovieLens100K",
                "MovieLens1M",
            ),
            *("NELL", "OGB_MAG", "Planetoid", "PolBlogs", "Reddit", "Reddit2", "Taobao", "Twitch", "WebKB", "WikiCS"),
            *("WikipediaNetwork", "WordNet18", "WordNet18RR", "Yelp"),
        )
    ),
    "dgl": frozenset(
        (
            *("ActorDataset", "AmazonCoBuyComputerDataset", "AmazonCoBuyPhotoDataset", "CiteseerGraphDataset"),
            *("CoauthorCSDataset", "CoauthorPhysicsDataset", "CoraFullDataset", "CoraGraphDataset", "FlickrDataset"),
            *("KarateClubDataset", "PubmedGraphDataset", "RedditDataset", "WikiCSDataset", "YelpDataset"),
        )
    ),
    "ogb": frozenset(
        (
            *("DglLinkPropPredDataset", "DglNodePropPredDataset", "LinkPropPredDataset", "NodePropPredDataset"),
            *("PygLinkPropPredDataset", "PygNodePropPredDataset"),
        )
    ),
}


def is_of_one(path: str) -> bool:
    """Whether a class of a library is a data set of one graph."""
    return path.rpartition(".")[2] in _OF_ONE.get(path.partition(".")[0], ())


def made(machine: Machine, value: Value) -> Value:
    """What such a class gave, as what it is; what is taken out of it is something else."""
    if isinstance(value, Unknown):
        machine.clock += 1
        value.key = (_ONE, machine.clock)
    return value


def gives_one_batch(loader: Loader) -> bool:
    """Whether a loader has one sample: a data set of one graph, or a list with one in it."""
    data = loader.data
    if loader.name != "DataLoader" or data is None or loader.open_arguments or not _draws_each_once(loader):
        return False
    is_graph = isinstance(data.key, tuple) and data.key[:1] == (_ONE,)
    return is_graph or (isinstance(data, Sequence) and not data.more and len(data.items) == 1)


def _draws_each_once(loader: Loader) -> bool:
    return all(_is_left_out(loader.arguments.get(each)) for each in ("sampler", "batch_sampler"))


def _is_left_out(value: Value | None) -> bool:
    return value is None or is_constant(value, None)

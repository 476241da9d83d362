// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "matchers.hpp"
#include "results/records/records_as_json_and_cbor.hpp"
#include "runner/microbench/rank_and_pair_speeds.hpp"
#include "runner/microbench/rows_and_link_classes.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"

namespace isoscale::runner::microbench {
namespace {

using namespace results;  // NOLINT(google-build-using-namespace)
using workloads::Case;

TEST(RankReports, ArriveAsTheyWereSent) {
  const auto unpacked = [](std::string_view packed) {
    return results::unpacked<RankReport>(std::as_bytes(std::span{packed}));
  };
  for (const RankReport& report :
       {RankReport{}, RankReport{.wrong = 0, .plays = {1, 2}},
        RankReport{.wrong = 7, .plays = {}, .stream_times = {{0, 1}, {2, 2}, {2, 3}}},
        RankReport{.plays = {1}, .sm_clock = 1.98e9, .throttle_reasons = 0x44},
        RankReport{.plays = {1}, .throttle_reasons = 0}}) {
    EXPECT_EQ(unpacked(results::packed(report)), report);
  }
  EXPECT_THROW((void)unpacked(""), base::Error);
  const std::string packed = results::packed(RankReport{.wrong = 7, .plays = {1, 2}});
  EXPECT_THROW((void)unpacked(packed.substr(0, packed.size() / 2)), base::Error);
}

const std::vector<RankReport> reports{
    {.wrong = 0, .plays = {1, 2}, .stream_times = {{0, 10}, {1, 20}, {0, 11}, {1, 21}, {0, 12}}},
    {.plays = {3, 4}, .stream_times = {{0, 13}, {1, 22}, {0, 14}, {1, 23}, {0, 15}}},
    {.wrong = 5, .plays = {5, 6}, .stream_times = {{0, 16}, {1, 24}, {0, 17}, {1, 25}, {0, 18}}}};
const CaseRecord record{.first_call = 0.5, .times = 3, .call_times = {0.1, 0.2}};

RowData row_of(const workloads::RowSpec& spec, const std::vector<RankReport>& told = reports,
               const CaseRecord& of = record) {
  return microbench::row_of(spec, Case{.calls = 4}, of, told);
}

TEST(Rows, HaveTheTimesOfTheirRanks) {
  const RowData all = row_of({.text = {{"op", "x"}}});
  EXPECT_EQ(all.calls, 12);
  EXPECT_THAT(all.times, ElementsAre(ElementsAre(1, 3, 5), ElementsAre(2, 4, 6)));
  EXPECT_THAT(all.call_times, ElementsAre(0.1, 0.2));
  EXPECT_EQ(all.number.at("first_call"), 0.5);
  EXPECT_EQ(all.wrong, 5);
  EXPECT_EQ(all.status, PointStatus::failed);
  EXPECT_THAT(all.reason, HasSubstr("5"));
  const RowData some = row_of({.ranks = {1, 0}});
  EXPECT_THAT(some.times, ElementsAre(ElementsAre(3, 1), ElementsAre(4, 2)));
  EXPECT_EQ(some.wrong, 0);  // what rank 2 found is not this row's
  EXPECT_EQ(some.status, PointStatus::ok);
  EXPECT_FALSE(row_of({.ranks = {1}}).wrong.has_value());
  const RowData stream = row_of({.ranks = {0, 2}, .stream = 1});
  EXPECT_THAT(stream.times, ElementsAre(ElementsAre(20, 24), ElementsAre(21, 25)));
  EXPECT_EQ(stream.calls, 4);  // a traced play is one pass
  EXPECT_TRUE(stream.call_times.empty());
}

TEST(Rows, HaveTheClocksOfTheirGpus) {
  const std::vector<results::DeviceSeries> sampled{
      {.device = "gpu 0", .quantity = "sm_clock", .value = {345e6, 1980e6, 1970e6}},
      {.device = "gpu 0", .quantity = "throttle_reasons", .value = {0x1, 0x4, 0x40}}};
  std::vector<RankReport> told = reports;
  note_gpu({}, told[0]);
  EXPECT_EQ(told[0], reports[0]);
  note_gpu(sampled, told[0]);
  EXPECT_EQ(told[0].sm_clock, 1970e6);
  EXPECT_EQ(told[0].throttle_reasons, 0x44);  // idle counts not
  told[1].sm_clock = 1410e6;
  told[1].throttle_reasons = 0x8;
  told[2].sm_clock = 1980e6;
  const auto all = row_of({}, told).number;
  EXPECT_EQ(all.at("sm_clock"), 1970e6);
  EXPECT_EQ(all.at("sm_clock_min"), 1410e6);
  EXPECT_EQ(all.at("throttle_reasons"), 0x4C);
  const auto some = row_of({.ranks = {0, 2}}, told).number;
  EXPECT_EQ(some.at("sm_clock"), 1975e6);
  EXPECT_EQ(some.at("throttle_reasons"), 0x44);
  EXPECT_FALSE(row_of({}).number.contains("sm_clock"));
}

TEST(Rows, AreNamedForPeople) {
  EXPECT_EQ(
      title_of({.text = {{"op", "all_reduce"}, {"dtype", "f32"}}, .number = {{"bytes", 1024}}}),
      "all_reduce f32 1.00 KiB");
}

/// Where a rank is, and its GPU ("" = none), which has links to `peers` ("" = none, "?" = nobody
/// knows where to).
struct Place {
  int node = 0;
  std::string pci{}, peers{}, fabric{};
};

std::vector<RankFacts> facts_of(const std::vector<Place>& ranks) {
  std::vector<RankFacts> facts;
  for (const auto& [node, pci, peers, fabric] : ranks) {
    RankFacts& rank = facts.emplace_back();
    rank.rank = static_cast<int>(facts.size()) - 1;
    rank.node = node;
    if (pci.empty()) continue;
    rank.text = {{"gpu_pci", pci}, {"gpu_uuid", "GPU-" + std::to_string(node) + pci}};
    rank.number["gpu_nvlinks"] = peers.empty() ? 0 : 4;
    if (!peers.empty() && peers != "?") rank.text["gpu_nvlink_peers"] = peers;
    if (!fabric.empty()) rank.text["gpu_fabric"] = fabric;
  }
  return facts;
}

TEST(LinkClass, IsWhatIsKnownOfTheNodesAndGpusOfAPair) {
  using Classes = std::vector<std::tuple<int, int, std::string>>;
  for (const auto& [ranks, classes] : std::vector<std::pair<std::vector<Place>, Classes>>{
           {{{0}, {0}, {1}}, {{0, 1, "same node"}, {0, 2, "other node"}}},
           {{{0, "1B", "2C,3D"}, {0, "2C", "1B"}, {0, "4E"}, {0, "5F", "3D"}},
            {{0, 1, "same node, NVLink"},
             {0, 3, "same node, NVLink"},  // through a switch
             {0, 2, "same node, PCIe"},
             {1, 3, "same node, PCIe"}}},
           // The GPU of rank 2 is that of rank 0; rank 3 has none.
           {{{0, "1B", "3D"}, {0, "2C", "?"}, {0, "1B", "3D"}, {0}},
            {{0, 1, "same node"}, {0, 2, "same node"}, {0, 3, "same node"}}},
           // Ranks of the second node have its GPUs in another order.
           {{{0, "1B"}, {0, "2C"}, {1, "9Z"}, {1, "3D"}, {2, "7A"}},
            {{0, 3, "other node, same rail"},
             {1, 2, "other node, same rail"},
             {0, 2, "other node"},
             {4, 0, "other node, same rail"}}},
           {{{0, "1B", "", "ab12.0"}, {0, "2C"}, {1, "9Z", "", "ab12.0"}, {1, "3D", "", "ab12.1"}},
            {{0, 2, "other node, NVLink domain"}, {0, 3, "other node, same rail"}}}}) {
    const std::vector<RankFacts> facts = facts_of(ranks);
    const LinkClasses known{facts};
    for (const auto& [a, b, expected] : classes) {
      EXPECT_EQ(known.of_pair(a, b), expected) << a << ", " << b;
      EXPECT_EQ(known.of_pair(b, a), expected) << b << ", " << a;
    }
  }
}

RowData row(std::map<std::string, std::string> text, std::vector<int> ranks = {}) {
  return {.text = std::move(text), .ranks = std::move(ranks)};
}

TEST(LinkClass, OfRowsFollowsTheRanksThatCommunicate) {
  const auto facts = facts_of({{0}, {0}, {1}, {1}, {2}});
  PointData point;
  point.mesh = {.tp = 2, .dp = 2};
  point.world_rank = {0, 1, 2, 3};
  point.rows = {row({{"op", "all_reduce"}, {"axis", "world"}}),
                row({{"op", "all_reduce"}, {"axis", "tp"}}),
                row({{"op", "all_gather"}, {"axis", "dp"}}),
                row({{"op", "all_reduce"}, {"axis", "tp"}}, {0, 1}),
                row({{"op", "p2p"}, {"kind", "bisection"}}, {0, 2, 1, 3}),
                row({{"op", "overlap"}, {"part", "together"}}),
                row({{"op", "overlap"}, {"part", "gemm"}}),
                row({{"op", "gemm"}}),
                row({{"op", "memory"}}),
                row({{"op", "p2p"}, {"kind", "latency"}}, {1, 2})};
  for (RowData& one : point.rows) {
    const bool has_groups = one.text.contains("axis") || text_of(one, "part") == "together";
    if (has_groups) one.number["members"] = 2;
  }
  point.rows.back().number = {{"src", 1}, {"dst", 2}};
  classify_rows(LinkClasses{facts}, point);
  EXPECT_THAT(mapped(point.rows, [](const RowData& one) { return text_of(one, "class"); }),
              ElementsAre("several nodes", "one node", "several nodes", "one node", "several nodes",
                          "several nodes", "", "", "", "other node"));
  point.world_rank = {4, 3, 2, 1};  // another placement: rank 1 and 2 are now on one node
  classify_rows(LinkClasses{facts}, point);
  EXPECT_EQ(point.rows.back().text["class"], "same node");
  EXPECT_EQ(point.rows[1].text["class"], "several nodes");
}

RowData link(int src, int dst, std::vector<double> plays) {
  RowData made = row({{"op", "p2p"}, {"kind", "bandwidth"}}, {src, dst});
  made.number = {{"src", src}, {"dst", dst}, {"bytes", 1000}};
  made.calls = 2;
  for (const double seconds : plays) made.times.push_back({seconds / 2, seconds});
  return made;
}

TEST(Pairs, BelowWhatIsExpectedFailWithBothEnds) {
  // The second is just as fast; the last is no bandwidth in one direction.
  std::vector<RowData> rows{link(0, 1, {1}), link(2, 1, {2}), link(1, 0, {3}), link(0, 2, {}),
                            link(0, 1, {50})};
  rows.back().text["kind"] = "bidirectional";
  const std::vector<std::string> names{rank_name(5, "a"), rank_name(3, "b"), rank_name(4, "c")};
  judge_bandwidth(rows, units::BytesPerSecond{1000}, names);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(rows[r].status, r == 2 ? PointStatus::failed : PointStatus::ok) << r;
  }
  EXPECT_THAT(rows[2].reason,
              AllOf(HasSubstr("667 B/s"), HasSubstr("rank 3 (b) to rank 5"), HasSubstr("1 kB/s")));
  EXPECT_EQ(reason_of_failed(rows), rows[2].reason);
  rows[4].status = PointStatus::failed;
  EXPECT_THAT(reason_of_failed(rows), HasSubstr("1 more row"));
  rows[3].status = PointStatus::failed;
  EXPECT_THAT(reason_of_failed(rows), HasSubstr("2 more rows"));
  EXPECT_EQ(reason_of_failed({}), "");
}

TEST(SniffPhases, PairNeighboursOfANodeFirstThenPlacesOfTwoNodes) {
  using Nodes = std::vector<int>;
  EXPECT_THAT(
      sniff_phases(Nodes{0, 0, 0, 0, 1, 1, 1, 1}),
      ElementsAre(ElementsAre(1, 0, 3, 2, 5, 4, 7, 6), ElementsAre(4, 5, 6, 7, 0, 1, 2, 3)));
  // No node is left out when their number is odd.
  EXPECT_THAT(sniff_phases(Nodes{0, 1, 2}),
              ElementsAre(ElementsAre(1, 0, -1), ElementsAre(2, -1, 0)));
  EXPECT_THAT(sniff_phases(Nodes{0, 1, 0, 1}),  // ranks are dealt out
              ElementsAre(ElementsAre(2, 3, 0, 1), ElementsAre(1, 0, 3, 2)));
  // Ranks without a partner sit out.
  EXPECT_THAT(sniff_phases(Nodes{0, 0, 0, 1}),
              ElementsAre(ElementsAre(1, 0, -1, -1), ElementsAre(3, -1, -1, 0)));
  EXPECT_THAT(sniff_phases(Nodes{0}), IsEmpty());
}

constexpr units::Bytes cache{std::uint64_t{60} << 20U};
workloads::PlayBounds bounds_of(std::string_view device) {
  return workloads::play_bounds({.device = device, .numa_nodes = 1, .gpu_cache = cache});
}

/// A run has a budget of ten seconds. A GPU's plays take two milliseconds or twenty calls, but no
/// more calls than keep ahead of the host.
TEST(PlayBounds, AreByDevice) {
  EXPECT_EQ(bounds_of("host"), workloads::PlayBounds{});
  for (const auto& [device, one, pass, expected] :
       {std::tuple{"host", Case{.most_times = 7}, 3e-6, 7U},
        {"host", {.most_times = 7}, 0.25, 2U},  // 20 plays in the budget
        {"host", {.most_times = 1}, 3e-6, 1U},
        {"cuda", {.most_times = 1}, 50e-6, 20U},
        {"cuda", {.most_times = 1}, 300e-6, 7U},
        {"cuda", {.calls = 4, .most_times = 1}, 100e-6, 5U},
        {"cuda", {.most_times = 1}, 5e-3, 1U},
        {"cuda", {.most_times = 30}, 50e-6, 30U},
        {"cuda", {.most_times = 1, .repeat = workloads::Repeat::never}, 50e-6, 1U},
        {"cuda", {.most_times = 1024}, 3e-6, 64U},
        {"cuda", {.calls = 16, .most_times = 1024}, 48e-6, 4U},
        {"cuda", {.calls = 500, .most_times = 1024}, 1.5e-3, 1U}}) {
    EXPECT_EQ(
        passes_of_play(one, units::Seconds{pass},
                       {.budget = units::Seconds{10}, .timeout = {}, .bounds = bounds_of(device)}),
        expected)
        << device << ", " << pass << " s";
  }
}

TEST(PlayBounds, ColdMultiplicationsGoThroughTwiceTheCacheOfAGpu) {
  const auto numbers = [](std::string_view device, const std::string& size) {
    workloads::Request request{
        .mesh = {},
        .precision = program::Precision::f32,
        .options = {{"shapes", size + "x" + size + "x" + size}, {"cache", "cold"}}};
    request.bounds = bounds_of(device);
    return workloads::gemm::hooks().build(request, 0).rows.front().number;
  };
  for (const std::string size : {"512", "1024", "2048", "8192"}) {
    EXPECT_GE(numbers("cuda", size).at("rotated_bytes"), 2.0 * static_cast<double>(cache.value()))
        << size;
    if (size == "512") continue;
    const auto host = numbers("host", size);
    EXPECT_EQ(host.at("rotated_bytes"), 2 * host.at("bytes")) << size;
  }
}

TEST(PlayBounds, ShortCollectivesOfAGpuAreInPassesOf64) {
  namespace collectives = workloads::collectives;
  workloads::Request request{.mesh = {.dp = 2}, .options = {{"op", "all_reduce"}, {"sizes", "8B"}}};
  const auto calls = [&] {
    return collectives::cases_of(request, collectives::setting_of(request)).front().calls;
  };
  EXPECT_EQ(calls(), 256);
  request.bounds = bounds_of("cuda");
  EXPECT_EQ(calls(), 64);
}

}  // namespace
}  // namespace isoscale::runner::microbench

// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The collective model against curves that were published, and against hand-made laws.
#include "analysis/predict/system_file.hpp"
#include "analysis_test.hpp"
#include "base/error.hpp"
#include "simulate/machine.hpp"
#include "simulate/op_time.hpp"

namespace isoscale::simulate {
namespace {

using program::DType;
using program::OpKind;

Network network_of(std::string_view file) { return *analysis::predict::load_system(file).network; }

GroupPlace place(int members, int nodes, int sharing = 1) {
  return {.members = members, .nodes = nodes, .node_members = members / nodes, .sharing = sharing};
}

double all_reduce(const Network& network, double bytes, const GroupPlace& at) {
  return network_collective(network, OpKind::all_reduce, bytes, at).seconds;
}

/// Expects errors of model / published - 1 of 10% in the mean and 25% at worst.
void expect_close(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) {
    sum += std::abs(error);
    EXPECT_LE(std::abs(error), 0.25) << testing::PrintToString(errors);
  }
  EXPECT_LE(sum / static_cast<double>(errors.size()), 0.10) << testing::PrintToString(errors);
}

double bus_rate(const Network& network, double bytes, int gpus) {
  const GroupPlace at = place(gpus, (gpus + 7) / 8);
  return 2.0 * (gpus - 1) / gpus * bytes / all_reduce(network, bytes, at);
}

TEST(CollectiveTime, FollowsTheCurveOfEightH100) {
  const Network network = network_of("h100-ndr");
  std::vector<double> errors;
  for (const auto& [bytes, microseconds] : samples::eight_h100) {
    errors.push_back(all_reduce(network, bytes, place(8, 1)) * 1e6 / microseconds - 1);
  }
  expect_close(errors);
}

/// GTC24 S62129, digitised to 5 GB/s: busbw of NVLSTree all_reduces at 16, 64, 128, 256, 512 MiB
/// and 1 GiB. None of its rows is in the system file, but the slope of their latency is.
struct BusRow {
  int gpus = 0;
  std::array<double, 6> busbw{};
};
constexpr std::array<BusRow, 9> nvls_tree{{
    {32, {126, 230, 278, 315, 339, 352}},
    {64, {82, 191, 259, 310, 340, 349}},
    {128, {72, 177, 244, 298, 330, 351}},
    {256, {67, 167, 227, 277, 319, 344}},
    {512, {58, 150, 211, 267, 309, 341}},
    {1024, {47, 123, 183, 256, 299, 332}},
    {2048, {43, 125, 188, 234, 288, 312}},
    {4096, {36, 109, 156, 226, 257, 297}},
    {8192, {33, 108, 159, 218, 267, 308}},
}};

TEST(CollectiveTime, FollowsNvlsTreesOverNodes) {
  Network network = network_of("h100-ndr");
  network.algorithms = {Algorithm::multicast};
  constexpr std::array<double, 6> sizes{0x1p24, 0x1p26, 0x1p27, 0x1p28, 0x1p29, 0x1p30};
  std::vector<double> errors;
  for (const BusRow& row : nvls_tree) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      errors.push_back(bus_rate(network, sizes[i], row.gpus) * 1e-9 / row.busbw[i] - 1);
    }
  }
  expect_close(errors);
}

/// stas00/ml-engineering: NVLS busbw on 4 to 8 H200 at 8 GiB.
TEST(CollectiveTime, MulticastMovesOneAndAnNth) {
  const Network network = network_of("h200-ndr");
  for (const auto& [gpus, published] :
       {std::pair{4, 363.3}, {5, 414.2}, {6, 435.6}, {7, 460.0}, {8, 473.1}}) {
    EXPECT_NEAR(bus_rate(network, 0x1p33, gpus) * 1e-9 / published, 1, 0.04) << gpus;
  }
}

/// A network of round numbers: 100 GB/s inside, 10 GB/s a port, 1 us and 10 us a hop.
Network round_numbers(Algorithm algorithm) {
  return {.node_ranks = 8,
          .inside = {.bandwidth = 100e9, .reached = 1, .latency = 1e-6},
          .across = {.bandwidth = 10e9, .reached = 1, .latency = 10e-6},
          .ports_per_rank = 1,
          .algorithms = {algorithm}};
}

TEST(CollectiveTime, RingsAreLinearInRanksAndTreesLogarithmicInNodes) {
  const Network ring = round_numbers(Algorithm::ring);
  // 31 steps once round for all_gather, of which 3 leave a node.
  EXPECT_NEAR(network_collective(ring, OpKind::all_gather, 0, place(32, 4)).seconds * 1e6,
              28 * 1 + 3 * 10, 1e-6);
  EXPECT_NEAR(all_reduce(ring, 0, place(32, 4)) * 1e6, 2 * (28 * 1 + 3 * 10), 1e-6);
  const Network tree = round_numbers(Algorithm::tree);
  EXPECT_NEAR(all_reduce(tree, 0, place(32, 4)) * 1e6, 2 * (7 * 1 + 2 * 10), 1e-6);
  EXPECT_NEAR(all_reduce(tree, 0, place(64, 8)) * 1e6, 2 * (7 * 1 + 3 * 10), 1e-6);
  // For much larger messages, the ranks of a tree pass on each byte twice.
  EXPECT_NEAR(all_reduce(tree, 1e13, place(8, 1)) / (2 * 1e13 / 92e9), 1, 0.01);
}

TEST(CollectiveTime, GroupsThatShareANodeShareItsPorts) {
  const Network ring = round_numbers(Algorithm::ring);
  const double bytes = 1e9;
  // One rank on each of 4 nodes has one port of 10 GB/s, however idle the others are; 2 of 4 nodes'
  // ranks together have two.
  const double wire = 2.0 * 3 / 4 * bytes / 10e9, hops = 2 * 3 * 10e-6;
  EXPECT_NEAR(all_reduce(ring, bytes, place(4, 4, 1)), wire + hops, 1e-9);
  EXPECT_NEAR(all_reduce(ring, bytes, place(4, 4, 8)), wire + hops, 1e-9);
  Network one_port = ring;
  one_port.ports_per_rank = 1.0 / 8;
  EXPECT_NEAR(all_reduce(one_port, bytes, place(4, 4, 8)), 8 * wire + hops, 1e-9);
  EXPECT_NEAR(all_reduce(one_port, bytes, place(4, 4, 1)), wire + hops, 1e-9);
}

TEST(CollectiveTime, LeastOfProtocolsAndAlgorithmsWins) {
  const Network h100 = network_of("h100-ndr");
  const auto at = [&](double bytes) {
    return network_collective(h100, OpKind::all_reduce, bytes, place(8, 1));
  };
  ASSERT_NE(at(8).protocol, nullptr);
  EXPECT_EQ(at(8).protocol->name, "LL");
  EXPECT_EQ(at(0x1p30).algorithm, Algorithm::multicast);
  for (double bytes = 8; bytes < 1e10; bytes *= 1.5) {
    EXPECT_LE(at(bytes).seconds, at(bytes * 1.5).seconds * (1 + 1e-9)) << bytes;
  }
}

TEST(CollectiveTime, MessagesTakeTheirLink) {
  const Network network = round_numbers(Algorithm::ring);
  EXPECT_NEAR(network_message(network, 1e9, place(2, 1)), 1e-6 + 1e9 / 100e9, 1e-9);
  EXPECT_NEAR(network_message(network, 1e9, place(2, 2, 8)), 10e-6 + 1e9 / 10e9, 1e-9);
}

/// 10 units of 1 TFLOP/s, 100 GB/s, 1 us from op to op.
Machine round_machine() {
  return {.name = "round",
          .source = "made up",
          .processor = Processor{.matrix = {{.type = DType::f32, .peak = 10e12}}, .launch = 1e-6},
          .memory = DeviceMemory{.capacity = 1e9, .bandwidth = 100e9}};
}

/// The time of a GEMM that reads A and B and writes C.
double seconds_of(const Machine& machine, const program::Gemm& gemm, DType type) {
  const double m = gemm.m, n = gemm.n, k = gemm.k;
  const auto size = static_cast<double>(program::element_size(type));
  return gemm_seconds(machine, gemm, type, (m * k + k * n + m * n) * size);
}

TEST(MachineTime, ShareIsStraightOverTheLogarithmOfSize) {
  const std::vector<ReachedShare> list{{.size = 1e3, .share = 0.2}, {.size = 1e5, .share = 0.8}};
  EXPECT_DOUBLE_EQ(reached_share(list, 1), 0.2);
  EXPECT_DOUBLE_EQ(reached_share(list, 1e4), 0.5);
  EXPECT_DOUBLE_EQ(reached_share(list, 1e9), 0.8);
  EXPECT_DOUBLE_EQ(reached_share({}, 5), 1);
}

TEST(MachineTime, GemmIsBoundByProductsOrByMemory) {
  const Machine machine = round_machine();
  // 2e12 FLOP at 10 TFLOP/s; 12 MB are nothing beside.
  EXPECT_NEAR(seconds_of(machine, {.m = 10000, .n = 10000, .k = 10000}, DType::f32), 0.2 + 1e-6,
              1e-9);
  // One column: 400 MB of a matrix at 100 GB/s, and two vectors of 40 kB.
  EXPECT_NEAR(seconds_of(machine, {.m = 10000, .n = 1, .k = 10000}, DType::f32),
              (400e6 + 80e3) / 100e9 + 1e-6, 1e-9);
  EXPECT_THROW(static_cast<void>(seconds_of(machine, {.m = 1, .n = 1, .k = 1}, DType::bf16)),
               base::UsageError);
}

TEST(MachineTime, TilesComeInWaves) {
  Processor processor = *round_machine().processor;
  processor.units = 10;
  processor.tile_rows = processor.tile_columns = 128;
  const MatrixRate& rate = processor.matrix.front();
  const auto seconds = [&](std::uint32_t m, std::uint32_t n) {
    return multiply_seconds(processor, rate, {.m = m, .n = n, .k = 256, .batch = 1});
  };
  const double wave = 2.0 * 128 * 128 * 256 / 1e12;            // of one tile on one unit
  EXPECT_NEAR(seconds(128 * 5, 128 * 2), wave, 1e-12);         // 10 tiles
  EXPECT_NEAR(seconds(128 * 10, 128 * 10), 10 * wave, 1e-12);  // 100
  EXPECT_GT(seconds(128 * 11, 128), 1.25 * wave);              // 11: a second wave, of small tiles
  EXPECT_LE(seconds(128 * 11, 128), 2 * wave);
  EXPECT_GT(seconds(1, 1), 0.2 * wave);  // no part of a tile is saved
}

TEST(MachineTime, LocalOpsMoveTheirBytes) {
  Machine machine = round_machine();
  EXPECT_NEAR(local_seconds(machine, OpKind::softmax, 1e9, 1e9), 1e-2 + 1e-6, 1e-12);
  machine.software.traffic = {{.kind = OpKind::softmax, .value = 2}};
  EXPECT_NEAR(local_seconds(machine, OpKind::softmax, 1e9, 1e9), 2e-2 + 1e-6, 1e-12);
  EXPECT_NEAR(local_seconds(machine, OpKind::norm, 1e9, 1e9), 1e-2 + 1e-6, 1e-12);
  machine.memory.reset();
  EXPECT_THROW(static_cast<void>(local_seconds(machine, OpKind::norm, 1, 1)), base::UsageError);
  EXPECT_THROW(static_cast<void>(collective_seconds(machine, OpKind::all_reduce, 1,
                                                    {.members = 2, .nodes = 1, .node_members = 2})),
               base::UsageError);
}

/// Cubes in f16 on an A100 (Azure AI benchmarking guide), TFLOP/s. The sheet's one share of the
/// peak is fitted to training runs, not to these.
TEST(MachineTime, GemmsOfAnA100GrowAsMeasured) {
  const Machine machine = analysis::predict::load_system("a100-hdr");
  const std::vector<std::pair<std::uint32_t, double>> published{
      {1024, 119}, {2048, 222}, {4096, 228}, {8192, 254}, {16384, 257}};
  for (const auto& [n, teraflops] : published) {
    const double flop = 2.0 * n * n * n;
    const double model = flop / seconds_of(machine, {.m = n, .n = n, .k = n}, DType::f16) * 1e-12;
    EXPECT_NEAR(model / teraflops, 1, 0.15) << n << ": " << model;
  }
}

}  // namespace
}  // namespace isoscale::simulate

// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Times of local ops from a data sheet.
#include "analysis/predict/system_file.hpp"
#include "analysis_test.hpp"
#include "base/error.hpp"
#include "simulate/machine.hpp"
#include "simulate/op_time.hpp"

namespace isoscale::simulate {
namespace {

using program::DType;
using program::OpKind;

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

TEST(MachineTime, GemmSustainsTheRateOfItsTypeAndSize) {
  Machine machine = round_machine();
  machine.processor->matrix = {
      {.type = DType::f32, .peak = 10e12, .reached = {{1e9, 0.2}, {1e11, 0.6}}},
      {.type = DType::bf16, .peak = 20e12, .reached = {{1, 0.5}}}};
  // 1e10 FLOP are halfway between 1e9 and 1e11.
  const program::Gemm gemm{.m = 1000, .n = 1000, .k = 5000};
  EXPECT_NEAR(seconds_of(machine, gemm, DType::f32), 1e10 / (0.4 * 10e12) + 1e-6, 1e-12);
  EXPECT_NEAR(seconds_of(machine, gemm, DType::bf16), 1e10 / (0.5 * 20e12) + 1e-6, 1e-12);
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

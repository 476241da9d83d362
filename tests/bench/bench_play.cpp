// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Measures what playing a program costs beside a hand-written loop of the same BLAS calls. Usage:
// bench_play [ROUNDS]
//   an op: a program of small GEMMs against a loop around cblas_sgemm with the same arguments
//   a span: that program played with spans against without
#include <cblas.h>
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "bench.hpp"
#include "comm/communicator.hpp"
#include "executor/host/host_executor.hpp"
#include "program/builder.hpp"
#include "workloads/gemm/gemm.hpp"

namespace isoscale {
namespace {

constexpr int small = 8;              // GEMM of 8 x 8 x 8: about 100 ns
constexpr std::size_t elements = 64;  // of such a matrix
constexpr int ops = 20'000;           // of the program of small GEMMs

/// Returns a program of one rank: a step multiplies two matrices again and again.
program::ProgramSet small_gemms() {
  const workloads::gemm::Shape shape{
      .m = small, .n = small, .k = small, .transpose_b = program::Transpose::no};
  program::Builder builder{{}};
  workloads::gemm::Operands operands{builder};
  operands.reserve(shape, 1);
  operands.fill();
  builder.begin(program::Section::step);
  for (int i = 0; i < ops; ++i) builder.emit(0, operands.multiplication(shape, 0));
  return program::alike({}, builder.finish());
}

void bench_op(executor::Executor& executor, const comm::Communicator& self, int rounds) {
  const auto session = executor.prepare(small_gemms(), self);
  session->play({.section = program::Section::setup});
  std::vector<float> a(elements, 0.5F), b(elements, 0.25F), d(elements);
  const auto by_hand = [&] {
    return bench::time_of([&] {
      for (int i = 0; i < ops; ++i) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, small, small, small, 1.0F, a.data(),
                    small, b.data(), small, 0.0F, d.data(), small);
      }
    });
  };
  const auto played = [&](executor::Trace trace) {
    return bench::time_of(
        [&] { session->play({.section = program::Section::step, .trace = trace}); });
  };
  const auto plain = [&] { return played(executor::Trace::off); };
  const auto traced = [&] { return played(executor::Trace::on); };
  const auto print_op = [&](const char* how, int goal, const auto& play) {
    static_cast<void>(play());
    const bench::Comparison result = bench::compare(rounds, play, by_hand);
    fmt::print("an op, {:<9} {:>6.1f} ns more than {:.1f} ns by hand (goal {})\n", how,
               (result.a - result.b) / ops * 1e9, result.b / ops * 1e9, goal);
  };
  print_op("untraced:", 50, plain);
  print_op("traced:", 150, traced);
  const bench::Comparison spans = bench::compare(rounds, traced, plain);
  fmt::print("recording a span: {:>6.1f} ns (goal 100)\n", (spans.a - spans.b) / ops * 1e9);
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) {
  using namespace isoscale;  // NOLINT: this is all that the program is
  const comm::Environment environment{&argc, &argv};
  const auto executor = executor::make_host_executor(
      {.streams = executor::HostStreams::folded, .threads_may_talk = comm::threads_may_talk()});
  bench_op(*executor, comm::Communicator::world(), bench::argument(argc, argv, 1, 11));
}

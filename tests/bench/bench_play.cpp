// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Measures what playing a program costs beside a hand-written loop of the same BLAS and MPI calls,
// at the same MPI thread level. Usage: [mpirun -np 2] bench_play [ROUNDS]
//   an op: a program of small GEMMs against a loop around cblas_sgemm with the same arguments
//   a span: that program played with spans against without
//   a step: the `tiny` step under tp against a list of plain calls on plain memory
#include <cblas.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench.hpp"
#include "comm/communicator.hpp"
#include "executor/host/host.hpp"
#include "program/builder.hpp"
#include "workloads/registry.hpp"

namespace isoscale {
namespace {

constexpr int small = 8;              // GEMM of 8 x 8 x 8: about 100 ns
constexpr std::size_t elements = 64;  // of such a matrix
constexpr int ops = 20'000;           // of the program of small GEMMs

program::ProgramSet small_gemms() {
  program::Builder builder{{}};
  const auto matrix = [&] {
    const program::BufferId id =
        builder.allocate({.role = program::Role::weight, .count = elements});
    builder.emit(0, program::Fill{.dst = builder.whole(id),
                                  .shard = {.extents = {1, 1, elements}, .local = {0, 0, 1}},
                                  .key = id,
                                  .exponent = -7});
    return program::Matrix{.slice = builder.whole(id), .row_stride = small};
  };
  const program::Matrix a = matrix(), b = matrix(), d = matrix();
  builder.begin(program::Section::step);
  for (int i = 0; i < ops; ++i) {
    builder.emit(0, program::Gemm{.m = small, .n = small, .k = small, .a = a, .b = b, .d = d});
  }
  program::ProgramSet set{.mesh = {}, .programs = {}, .program_of_rank = {0}};
  set.programs.push_back(builder.finish());
  return set;
}

void bench_op(executor::Executor& executor, const comm::Communicator& self, int rounds) {
  const program::ProgramSet set = small_gemms();
  const auto session = executor.prepare(set, self);
  session->play(program::Section::setup, executor::Trace::off);
  std::vector<float> a(elements, 0.5F), b(elements, 0.25F), d(elements);
  const auto by_hand = [&] {
    for (int i = 0; i < ops; ++i) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, small, small, small, 1.0F, a.data(),
                  small, b.data(), small, 0.0F, d.data(), small);
    }
  };
  for (const auto trace : {executor::Trace::off, executor::Trace::on}) {
    const auto played = [&] { session->play(program::Section::step, trace); };
    played();
    const bench::Comparison result = bench::compare(rounds, played, by_hand);
    fmt::print(
        "an op, {:<9} {:>6.1f} ns more than {:.1f} ns by hand (goal {})\n",
        trace == executor::Trace::on ? "traced:" : "untraced:", (result.a - result.b) / ops * 1e9,
        result.b / ops * 1e9, trace == executor::Trace::on ? 150 : 50);
  }
  const bench::Comparison spans = bench::compare(
      rounds, [&] { session->play(program::Section::step, executor::Trace::on); },
      [&] { session->play(program::Section::step, executor::Trace::off); });
  fmt::print("recording a span: {:>6.1f} ns (goal 100)\n", (spans.a - spans.b) / ops * 1e9);
}

/// One plain call, as a programmer without programs would have written it down.
struct Call {
  enum class Kind : std::uint8_t { gemm, copy, all_reduce, update } kind = Kind::gemm;
  CBLAS_TRANSPOSE transpose_a = CblasNoTrans, transpose_b = CblasNoTrans;
  int m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0, ldd = 0;
  float alpha = 1, beta = 0;
  float *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
};

void play_by_hand(const std::vector<Call>& calls, MPI_Comm group) {
  for (const Call& call : calls) {
    switch (call.kind) {
      case Call::Kind::gemm:
        cblas_sgemm(CblasRowMajor, call.transpose_a, call.transpose_b, call.m, call.n, call.k,
                    call.alpha, call.a, call.lda, call.b, call.ldb, call.beta, call.d, call.ldd);
        break;
      case Call::Kind::copy:  // C into D before a GEMM that adds to it
        for (int row = 0; row < call.m; ++row) {
          std::memcpy(call.d + static_cast<std::ptrdiff_t>(row) * call.ldd,
                      call.c + static_cast<std::ptrdiff_t>(row) * call.ldc,
                      sizeof(float) * static_cast<std::size_t>(call.n));
        }
        break;
      case Call::Kind::all_reduce:
        MPI_Allreduce(MPI_IN_PLACE, call.d, call.n, MPI_FLOAT, MPI_SUM, group);
        break;
      case Call::Kind::update:
        for (int i = 0; i < call.n; ++i) call.d[i] -= call.alpha * (call.beta * call.a[i]);
        break;
    }
  }
}

/// The calls of a section, on an arena of our own laid out as the program's.
class ByHand {
 public:
  ByHand(const program::ProgramSet& set, int rank)
      : program_(set.of(rank)),
        at_(mesh::coordinates(set.mesh, rank)),
        floats_(program_.arena_bytes[0] / sizeof(float)),
        // Aligned as the executor's own memory is.
        arena_(static_cast<float*>(
                   std::aligned_alloc(4096, (floats_ * sizeof(float) + 4095) / 4096 * 4096)),
               &std::free) {
    for (std::size_t i = 0; i < floats_; ++i) {
      arena_.get()[i] = 0.01F * static_cast<float>(i % 17) - 0.08F;
    }
    for (const program::Op& op : program_.step().ops) {
      if (const auto* gemm = std::get_if<program::Gemm>(&op.payload)) add(*gemm);
      if (const auto* collective = std::get_if<program::Collective>(&op.payload)) {
        calls_.push_back({.kind = Call::Kind::all_reduce,
                          .n = static_cast<int>(collective->receive.count),
                          .d = pointer(collective->receive)});
      }
      if (const auto* update = std::get_if<program::Update>(&op.payload)) {
        calls_.push_back({.kind = Call::Kind::update,
                          .n = static_cast<int>(update->weight.count),
                          .alpha = static_cast<float>(update->rate),
                          .beta = static_cast<float>(update->gradient_scale),
                          .a = pointer(update->gradient),
                          .d = pointer(update->weight)});
      }
    }
  }

  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }

 private:
  [[nodiscard]] float* pointer(const program::Slice& slice) {
    return arena_.get() + program_.buffers[slice.buffer].offset / sizeof(float) + slice.first(at_);
  }

  void add(const program::Gemm& gemm) {
    for (std::uint32_t i = 0; i < gemm.batch; ++i) {
      const auto at = [&](const program::Matrix& matrix) {
        return pointer(matrix.slice) + i * matrix.batch_stride;
      };
      Call call{.m = static_cast<int>(gemm.m),
                .n = static_cast<int>(gemm.n),
                .k = static_cast<int>(gemm.k),
                .lda = static_cast<int>(gemm.a.row_stride),
                .ldb = static_cast<int>(gemm.b.row_stride),
                .ldd = static_cast<int>(gemm.d.row_stride),
                .alpha = static_cast<float>(gemm.alpha),
                .beta = static_cast<float>(gemm.beta),
                .a = at(gemm.a),
                .b = at(gemm.b),
                .d = at(gemm.d)};
      if (gemm.transpose_a == program::Transpose::yes) call.transpose_a = CblasTrans;
      if (gemm.transpose_b == program::Transpose::yes) call.transpose_b = CblasTrans;
      if (gemm.beta != 0 && at(gemm.c) != call.d) {
        Call copy = call;
        copy.kind = Call::Kind::copy;
        copy.c = at(gemm.c);
        copy.ldc = static_cast<int>(gemm.c.row_stride);
        calls_.push_back(copy);
      }
      calls_.push_back(call);
    }
  }

  const program::RankProgram& program_;
  mesh::Coordinates at_;
  std::size_t floats_;
  std::unique_ptr<float, decltype(&std::free)> arena_;
  std::vector<Call> calls_;
};

void bench_step(executor::Executor& executor, const comm::Communicator& world, int rounds) {
  const workloads::Workload& tp = workloads::find_workload("tp");
  const auto request = tp.scale({.model = workloads::load_model("tiny")}, {.tp = world.size()},
                                workloads::Scaling::strong);
  const program::ProgramSet set = tp.build(request);
  const auto session = executor.prepare(set, world);
  session->play(program::Section::setup, executor::Trace::off);
  const ByHand by_hand{set, world.rank()};
  const auto played = [&] { session->play(program::Section::step, executor::Trace::off); };
  const auto plain = [&] { play_by_hand(by_hand.calls(), world.get()); };
  played();
  plain();
  const bench::Comparison result = bench::compare(rounds, played, plain);
  if (world.rank() == 0) {
    fmt::print(
        "a tiny step on {} rank{}: {:.3f} ms played, {:.3f} ms by hand: {:+.2f}% (goal 2%)\n",
        world.size(), world.size() == 1 ? "" : "s", result.a * 1e3, result.b * 1e3,
        (result.ratio - 1) * 100);
  }
}

int run(int argc, char** argv) {
  comm::Environment environment{&argc, &argv};
  const int rounds = bench::argument(argc, argv, 1, 11);
  const comm::Communicator world = comm::Communicator::world();
  const auto executor = executor::make_host_executor({.streams = executor::HostStreams::folded,
                                                      .ranks_on_node = world.size(),
                                                      .thread_level = environment.thread_level()});
  const comm::Communicator self = world.split(world.rank(), 0);
  if (world.rank() == 0) bench_op(*executor, self, rounds);
  world.barrier();
  bench_step(*executor, world, rounds);
  return 0;
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) { return isoscale::run(argc, argv); }

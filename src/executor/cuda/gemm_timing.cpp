// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gemm_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "executor/cuda/call.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/gemm_choice.hpp"
#include "executor/cuda/memory.hpp"
#include "program/fill_and_checksum.hpp"

namespace isoscale::executor::cuda {
namespace {

/// What cuBLAS itself takes on Hopper.
constexpr std::size_t most_workspace = std::size_t{32} << 20U;
constexpr int most_candidates = 16;
// Seconds of work. An idle GPU runs at a low clock and needs a while to raise it; a busy one lowers
// it again when it reaches the limit of its power.
constexpr double warm_up_seconds = 100e-3;
constexpr double batch_seconds = 1e-3;  // of calls between two events
constexpr double turn_seconds = 7e-3;   // of one algorithm before the next has its turn
constexpr double final_seconds = 50e-3;
constexpr double least_batch = 1e-5;  // counted for one, so that empty ones come to an end
constexpr int rounds = 3;
constexpr std::size_t finalists = 3;
constexpr int most_calls = 1000;  // in a batch

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         Value value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t library,
                                                        const GemmProblem& problem,
                                                        const GemmPlan& plan) {
  cublasLtMatmulPreference_t raw = nullptr;
  check(cublasLtMatmulPreferenceCreate(&raw));
  const MatmulPreference preference{raw};
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
  // Partial sums of a split k are added in f32: not in the type of the result, where that is
  // narrow.
  set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.first.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.second.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.c.alignment());
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.d.alignment());
  std::vector<cublasLtMatmulHeuristicResult_t> found(most_candidates);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library, plan.operation(), plan.first(), plan.second(), plan.c(), plan.d(), raw,
      most_candidates, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) count = 0;
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status);
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

/// Numbers of all digits: zeros, and numbers of few digits, would draw less power and run faster.
void randomize(const Operand& operand, std::uint64_t batch, std::uint64_t key,
               cudaStream_t stream) {
  launch(FillCall{.type = operand.type,
                  .dst = operand.data,
                  .extents = {1, 1, operand.extent(batch)},
                  .local = {0, 0, 1},
                  .global = {0, 0, 1},
                  .grid = {.origin = program::fill_origin(key)},
                  .source = program::FillSource::normal},
         stream);
}

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {}

  /// Seconds that `calls` of the GEMM take together.
  double time(const GemmCall& call, int calls) const {
    check(cudaEventRecord(begin_.get(), stream_));
    for (int i = 0; i < calls; ++i) launch(call, stream_);
    check(cudaEventRecord(end_.get(), stream_));
    check(cudaEventSynchronize(end_.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaStream_t stream_;
  Event begin_ = make_event(Timing::on), end_ = make_event(Timing::on);
};

/// An algorithm that runs, and what one call takes.
struct Candidate {
  GemmCall call;
  double once = 0;    ///< seconds, as measured last
  double time = 0;    ///< seconds: the smallest of the medians of its turns
  double worked = 0;  ///< seconds
};

/// Loads the algorithm's kernel; false when it cannot run after all.
bool starts(Candidate& candidate, const Stopwatch& stopwatch) {
  try {
    static_cast<void>(stopwatch.time(candidate.call, 1));
    candidate.once = stopwatch.time(candidate.call, 1);
    return true;
  } catch (const CublasError&) {
    static_cast<void>(cudaGetLastError());  // else the next kernel would be blamed
    return false;
  }
}

/// Plays batches for `seconds`; the median of what one call took in each.
double play(Candidate& candidate, double seconds, const Stopwatch& stopwatch) {
  const int calls =
      std::clamp(static_cast<int>(batch_seconds / std::max(candidate.once, 1e-9)), 1, most_calls);
  std::vector<double> times;
  const double end = candidate.worked + seconds;
  while (candidate.worked < end) {
    const double batch = stopwatch.time(candidate.call, calls);
    candidate.worked += std::max(batch, least_batch);
    times.push_back(batch / calls);
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  candidate.once = *middle;
  return *middle;
}

/// Gives every candidate its turn, at least `least_rounds` times and until each has worked for
/// `seconds`; puts the fastest first.
void race(std::span<Candidate> field, int least_rounds, double seconds,
          const Stopwatch& stopwatch) {
  for (Candidate& one : field) {
    one.time = std::numeric_limits<double>::infinity();
    one.worked = 0;
  }
  const auto needs_more = [&](const Candidate& one) { return one.worked < seconds; };
  for (int round = 0; round < least_rounds || std::ranges::any_of(field, needs_more); ++round) {
    for (Candidate& one : field) one.time = std::min(one.time, play(one, turn_seconds, stopwatch));
  }
  std::ranges::stable_sort(field, {}, &Candidate::time);
}

/// The scales of fp8 operands, which nothing has been written to: by zeros the result would be
/// zeros, which draw less power.
void set_scales(const GemmProblem& problem, cudaStream_t stream) {
  const float one = 1;
  for (float* const scale : {problem.descale_first, problem.descale_second}) {
    if (scale == nullptr) continue;
    check(cudaMemcpyAsync(scale, &one, sizeof one, cudaMemcpyDefault, stream));
  }
}

}  // namespace

GemmChoice fastest_algorithm(cublasLtHandle_t library, const GemmProblem& problem,
                             const std::string& shape) {
  const GemmPlan plan{problem};
  const Stream stream = make_stream(Priority::normal);
  randomize(problem.first, problem.batch, 1, stream.get());
  randomize(problem.second, problem.batch, 2, stream.get());
  randomize(problem.c, problem.batch, 3, stream.get());
  set_scales(problem, stream.get());
  const DeviceMemory workspace = allocate_device(units::Bytes{most_workspace});
  const Stopwatch stopwatch{stream.get()};

  std::vector<Candidate> field;
  for (const cublasLtMatmulHeuristicResult_t& offered : candidates(library, problem, plan)) {
    Candidate candidate{.call = {.library = library,
                                 .plan = &plan,
                                 .algorithm = offered.algo,
                                 .problem = problem,
                                 .workspace = workspace.get(),
                                 .workspace_bytes = offered.workspaceSize}};
    if (starts(candidate, stopwatch)) field.push_back(candidate);
  }
  if (field.empty()) {
    throw base::Error(fmt::format("cuBLASLt has no algorithm for the GEMM {}", shape));
  }
  static_cast<void>(play(field.front(), warm_up_seconds, stopwatch));  // the heuristic's best
  race(field, rounds, 0, stopwatch);
  race(std::span{field}.first(std::min(finalists, field.size())), 1, final_seconds, stopwatch);
  const Candidate& best = field.front();
  return {.shape = shape,
          .algorithm = to_text(best.call.algorithm),
          .workspace = units::Bytes{best.call.workspace_bytes},
          .time = units::Seconds{best.time},
          .candidates = static_cast<int>(field.size())};
}

}  // namespace isoscale::executor::cuda

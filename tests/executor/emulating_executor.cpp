// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/executor/emulating_executor.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "executor/host/communicators.hpp"
#include "executor/host/compute_ops.hpp"
#include "executor/host/host.hpp"
#include "executor/host/player.hpp"
#include "executor/host/prepare.hpp"
#include "executor/host/resources.hpp"
#include "executor/op_requirements.hpp"
#include "executor/point_requirements.hpp"
#include "program/low_precision.hpp"
#include "program/operands.hpp"

namespace isoscale::executor {
namespace {

using program::DType;
using program::Matrix;
using program::Slice;
using Work = std::function<void()>;

/// Returns a program whose f32 and narrower floats lie as f32 behind the arenas of `program`; other
/// buffers keep their places.
program::RankProgram widened(program::RankProgram program) {
  constexpr std::uint64_t alignment = 64;
  for (program::Buffer& buffer : program.buffers) {
    if (buffer.dtype != DType::f32 && !program::narrow_format(buffer.dtype)) continue;
    std::uint64_t& end = program.arena_bytes[static_cast<std::size_t>(buffer.space)];
    end = (end + alignment - 1) / alignment * alignment;
    buffer.dtype = DType::f32;
    buffer.offset = end;
    end += buffer.count * sizeof(float);
  }
  return program;
}

class EmulatingSession final : public Session {
 public:
  EmulatingSession(const program::ProgramSet& set, const comm::Communicator& point)
      : stored_program_(set.of(point.rank())),
        wide_program_(widened(stored_program_)),
        communicators_(communication_needs(set), set.mesh, point),
        stored_(stored_program_, set.mesh, point.rank(), allocate_arenas()),
        wide_(wide_program_, set.mesh, point.rank(), addresses_) {
    const auto staging =
        host::staging_bytes(stored_program_, set.mesh, host_elements.elements_per_call);
    host::PrepareOptions options = host_elements;
    for (std::size_t stream = 0; stream < staging.size(); ++stream) {
      staging_[stream] = host::allocate(staging[stream]);
      const host::Mapping& memory = staging_[stream].get();
      options.staging[stream] = {memory.address, memory.bytes};
    }
    player_.stopped = &never_;
    facts_.folded = true;
    facts_.folded_reason = "asked for";
    for (const program::Program* section : stored_program_.sections()) prepare(*section, options);
  }

  using Session::play;
  PlayTime play(const Play& what) override {
    const std::vector<Work>& ops = sections_.at(static_cast<std::size_t>(what.section));
    const bool is_traced = what.trace == Trace::on;
    if (is_traced) spans_.resize(ops.size());
    player_.patience = units::to_nanoseconds(what.timeout);
    const units::Nanoseconds begin = comm::now();
    for (std::uint32_t pass = 0; pass < (is_traced ? 1 : what.times); ++pass) {
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        const units::Nanoseconds start = comm::now();
        ops[i]();
        if (is_traced) spans_[i] = {.op = i, .start = start, .end = comm::now()};
      }
    }
    return {.begin = begin, .end = comm::now()};
  }
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return spans_; }
  void read(const Slice& slice, std::span<std::byte> into) override {
    std::memcpy(into.data(), stored_.address(slice), into.size());
  }
  void write(const Slice& slice, std::span<const std::byte> from) override {
    std::memcpy(stored_.address(slice), from.data(), from.size());
  }
  [[nodiscard]] const SessionFacts& facts() const override { return facts_; }
  void abandon() noexcept override { communicators_.abandon(); }

 private:
  static constexpr host::PrepareOptions host_elements{.folding = host::Folding::folded,
                                                      .elements_per_call = max_elements_per_call};

  const ArenaPointers& allocate_arenas() {
    for (std::size_t i = 0; i < arenas_.size(); ++i) {
      arenas_[i] = host::allocate(units::Bytes{wide_program_.arena_bytes[i]});
      addresses_[i] = arenas_[i].get().address;
    }
    return addresses_;
  }

  static bool is_emulated(const program::Payload& payload) {
    const program::OpKind kind = program::kind_of(payload);
    return program::computes(kind) && kind != program::OpKind::fill &&
           kind != program::OpKind::checksum;
  }

  /// The host executor prepares the ops that do not compute; in its program nothing is in the place
  /// of the others.
  void prepare(const program::Program& section, const host::PrepareOptions& options) {
    program::Program moving = section;
    for (program::Op& op : moving.ops) {
      if (is_emulated(op.payload)) op.payload = program::Exchange{};
    }
    host::PreparedSection& prepared =
        pieces_.emplace_back(host::prepare(stored_, moving, communicators_, options));
    advanced_.clear();
    std::vector<Work>& works = sections_.emplace_back();
    for (std::uint32_t i = 0; i < section.ops.size(); ++i) {
      const program::Op& op = section.ops[i];
      if (is_emulated(op.payload)) {
        works.push_back(naming(op, i, [&] {
          return std::visit([this](const auto& payload) { return emulated(payload); }, op.payload);
        }));
      } else {
        works.push_back(playing(std::move(prepared.lanes.front()[i].call)));
      }
    }
  }

  Work playing(host::Call call) {
    return [this, call = std::move(call)] { call(player_); };
  }

  void widen(const Slice& slice) const {
    std::byte* const wide = wide_.address(slice);
    if (wide == stored_.address(slice)) return;  // f64 or integers
    std::vector<double> values(slice.count);
    host::widen_row(stored_.dtype(slice), stored_.address(slice), values.data(), slice.count);
    host::narrow_row(values.data(), DType::f32, wide, slice.count);
  }
  void round(const Slice& slice) const {
    std::byte* const stored = stored_.address(slice);
    if (wide_.address(slice) == stored) return;
    std::vector<double> values(slice.count);
    host::widen_row(DType::f32, wide_.address(slice), values.data(), slice.count);
    host::narrow_row(values.data(), stored_.dtype(slice), stored, slice.count);
  }

  /// Returns `work` between copying the operands to f32 and back. What is written is copied before,
  /// too, since slices of matrices may have gaps.
  template <class Op>
  Work around(const Op& op, Work work) {
    std::vector<Slice> all, written;
    program::for_each_slice(op, [&](const Slice& slice, program::Mode mode) {
      all.push_back(slice);
      if (mode == program::Mode::write) written.push_back(slice);
    });
    return [this, all, written, work = std::move(work)] {
      for (const Slice& slice : all) widen(slice);
      work();
      for (const Slice& slice : written) round(slice);
    };
  }

  template <class Op>
  Work emulated(const Op& op) {
    return around(op, playing(host::prepare_local(wide_, op)));
  }

  Work emulated(const program::Gemm& op) {
    program::Gemm plain = op;
    plain.mode = program::ComputeMode::native;
    plain.descale_a = plain.descale_b = program::no_buffer;
    const host::GemmCall call = host::gemm_call(wide_, plain);
    return around(op, [this, op, call] {
      if (op.mode == program::ComputeMode::tf32) {
        for (const Slice& slice : {op.a.slice, op.b.slice}) {
          auto* const values = reinterpret_cast<float*>(wide_.address(slice));
          std::transform(values, values + slice.count, values, program::round_to_tf32);
        }
      }
      host::GemmCall scaled = call;
      for (const program::BufferId scale : {op.descale_a, op.descale_b}) {
        if (scale == program::no_buffer) continue;
        const std::byte* const at = stored_.address(program::scalar(scale));
        scaled.alpha *= static_cast<double>(*reinterpret_cast<const float*>(at));
      }
      host::run(scaled);
    });
  }

  /// The sum is rounded as it is stored before it is normed: the gradient will read it so.
  Work emulated(const program::Norm& op) {
    program::Norm norm = op;
    norm.addend = norm.sum = {};
    if (!program::exists(op.addend)) return around(norm, playing(host::prepare_local(wide_, norm)));
    norm.x = op.sum;
    const program::Add add{
        .rows = op.rows, .columns = op.columns, .a = op.x, .b = op.addend, .dst = op.sum};
    return [sum = emulated(add), normed = emulated(norm)] {
      sum();
      normed();
    };
  }

  Work emulated(const program::Update& op) {
    const bool advances = op.optimizer == program::Optimizer::adam &&
                          advanced_.insert(wide_.address(op.powers)).second;
    const Powers powers = advances ? Powers::advance : Powers::keep;
    return around(op, playing(host::prepare_local(wide_, op, powers)));
  }

  /// Values are scaled in f64, then rounded once.
  Work emulated(const program::Cast& op) {
    const auto row_of = [this](const Matrix& matrix, std::size_t row) {
      return stored_.address(matrix.slice) +
             row * matrix.row_stride * stored_.element_size(matrix.slice);
    };
    return [this, op, row_of] {
      const std::size_t rows = op.rows, columns = op.columns;
      std::vector<double> values(rows * columns), turned(rows * columns);
      for (std::size_t row = 0; row < rows; ++row) {
        host::widen_row(stored_.dtype(op.src.slice), row_of(op.src, row),
                        values.data() + row * columns, columns);
      }
      double scale = op.scale;
      if (op.scaling == program::CastScale::amax) {
        double largest = 0;
        for (const double value : values) {
          largest = std::isfinite(value) ? std::max(largest, std::abs(value))
                                         : std::numeric_limits<double>::infinity();
          if (std::isinf(largest)) break;
        }
        scale = program::amax_scale(op.target, largest);
        const auto inverse = static_cast<float>(1 / scale);
        std::memcpy(stored_.address(program::scalar(op.descale)), &inverse, sizeof inverse);
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] *= scale;
        turned[i % columns * rows + i / columns] = values[i];
      }
      const auto store = [&](const Matrix& matrix, const std::vector<double>& from,
                             std::size_t width) {
        if (!program::exists(matrix)) return;
        for (std::size_t row = 0; row * width < from.size(); ++row) {
          host::narrow_row(from.data() + row * width, stored_.dtype(matrix.slice),
                           row_of(matrix, row), width);
        }
      };
      store(op.dst, values, columns);
      store(op.transposed, turned, rows);
    };
  }

  program::RankProgram stored_program_, wide_program_;
  host::Communicators communicators_;
  std::array<host::Storage, program::space_count> arenas_;
  ArenaPointers addresses_{};
  std::array<host::Storage, program::max_streams> staging_;
  Resolver stored_, wide_;  ///< of the elements as stored, and of their f32 copies
  std::deque<host::PreparedSection> pieces_;
  std::vector<std::vector<Work>> sections_;  ///< one work per op
  std::set<const std::byte*> advanced_;      ///< powers that the section advances
  std::vector<timeline::Span> spans_;
  host::Player player_;
  std::atomic<bool> never_{false};
  SessionFacts facts_;
};

class EmulatingExecutor final : public Executor {
 public:
  EmulatingExecutor() : host_(make_host_executor({})), description_(host_->describe()) {
    using enum program::Precision;
    description_.precisions = {f64, f32, tf32, f16, bf16, fp8};
  }
  [[nodiscard]] const Description& describe() const override { return description_; }
  using Executor::prepare;
  [[nodiscard]] std::unique_ptr<Session> prepare(const program::ProgramSet& set,
                                                 const comm::Communicator& point,
                                                 const SessionOptions& options) override {
    require_usual_communication(options, "emulating executor");
    require_no_faults(options, "emulating executor");
    return std::make_unique<EmulatingSession>(set, point);
  }

 private:
  std::unique_ptr<Executor> host_;  ///< whose number of BLAS threads holds
  Description description_;
};

}  // namespace

std::unique_ptr<Executor> make_emulating_executor() {
  return std::make_unique<EmulatingExecutor>();
}

}  // namespace isoscale::executor

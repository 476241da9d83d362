// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/executor/emulating_executor.hpp"

#include <stdexcept>

#include "executor/host/resources.hpp"
#include "executor/host/stream_threads.hpp"
#include "executor/op_arguments.hpp"
#include "tests/executor/narrow_ops.hpp"

namespace isoscale::executor {
namespace {

using program::DType;
using program::Gemm;
using program::Slice;

/// Returns a program whose narrow floats are f32: GEMMs are laid out by it.
program::RankProgram widened(program::RankProgram program) {
  for (program::Buffer& buffer : program.buffers) {
    if (program::narrow_format(buffer.dtype)) buffer.dtype = DType::f32;
  }
  for (std::uint64_t& bytes : program.arena_bytes) bytes *= sizeof(float);
  return program;
}

class EmulatingSession final : public Session {
 public:
  EmulatingSession(const program::ProgramSet& set, const comm::Communicator& point)
      : stored_program_(set.of(point.rank())),
        communicators_(communication_needs(set), set.mesh, point),
        stored_(stored_program_, set.mesh, point.rank(), allocate_arenas()),
        wide_(widened(stored_program_), set.mesh, point.rank(), addresses_) {
    const auto staging =
        host::staging_bytes(stored_program_, set.mesh, host_elements.elements_per_call);
    host::PrepareOptions options = host_elements;
    for (std::size_t stream = 0; stream < staging.size(); ++stream) {
      staging_[stream] = host::allocate(staging[stream]);
      const host::Mapping& memory = staging_[stream].get();
      options.staging[stream] = {memory.address, memory.bytes};
    }
    facts_.folded = true;
    facts_.folded_reason = "asked for";
    for (const program::Program* section : stored_program_.sections()) prepare(*section, options);
  }

  PlayTime play(const Play& what) override {
    const host::PreparedSection& section = sections_.at(static_cast<std::size_t>(what.section));
    const bool is_traced = what.trace == Trace::on;
    if (is_traced) spans_.resize(section.op_count);
    player_.set_patience(units::to_nanoseconds(what.timeout));
    const units::Nanoseconds begin = comm::now();
    for (std::uint32_t pass = 0; pass < (is_traced ? 1 : what.times); ++pass) {
      player_.begin(section, is_traced ? host::Spans{spans_} : host::Spans{});
      player_.play_lane(0);
      player_.end();
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
  static constexpr host::PrepareOptions host_elements{.folding = program::Folding::folded,
                                                      .elements_per_call = max_elements_per_call};

  const ArenaPointers& allocate_arenas() {
    for (std::size_t i = 0; i < arenas_.size(); ++i) {
      arenas_[i] = host::allocate(units::Bytes{stored_program_.arena_bytes[i]});
      addresses_[i] = arenas_[i].get().address;
    }
    return addresses_;
  }

  static bool is_emulated(const program::Payload& payload) {
    return program::computes(program::kind_of(payload));
  }

  /// The host executor prepares the ops that do not compute; in its program nothing is in the place
  /// of the others.
  void prepare(const program::Program& section, const host::PrepareOptions& options) {
    program::Program moving = section;
    for (program::Op& op : moving.ops) {
      if (is_emulated(op.payload)) op.payload = program::Exchange{};
    }
    host::PreparedSection& prepared =
        sections_.emplace_back(host::prepare(stored_, moving, communicators_, options));
    advanced_.clear();
    for (host::PreparedOp& ready : prepared.lanes.front()) {
      const program::Op& op = section.ops[ready.index];
      if (!is_emulated(op.payload)) continue;
      ready.call = naming(op, ready.index, [&] {
        return std::visit([this](const auto& payload) { return emulated(payload); }, op.payload);
      });
    }
  }

  template <class Op>
  Arguments<Op> arguments(const Op& op) const {
    return arguments_of(stored_, op, [](const TypedOperand&, const program::Slice&) {});
  }

  template <class Op>
  host::Call emulated(const Op& op) const {
    if constexpr (requires(const Arguments<Op>& call) { host::run(call); }) {
      return [call = arguments(op)](host::Player&) { play_op(call); };
    } else {
      throw std::logic_error("the host executor plays this op");
    }
  }

  host::Call emulated(const Gemm& op) const {
    Gemm plain = op;
    plain.mode = program::ComputeMode::native;
    plain.descale_a = plain.descale_b = program::no_buffer;
    return [at = arguments(op), layout = host::gemm_call(wide_, plain)](host::Player& player) {
      Arguments<Gemm> wide = at;
      const Widened widened{wide};
      host::GemmCall call = layout;
      std::vector<float> a, b;
      if (at.op.mode == program::ComputeMode::tf32) {
        a = rounded_to_tf32(wide.at(&Gemm::a), at.op.a.slice.count);
        b = rounded_to_tf32(wide.at(&Gemm::b), at.op.b.slice.count);
      }
      call.a = wide[&Gemm::a].data;
      call.b = wide[&Gemm::b].data;
      call.d = wide[&Gemm::d].data;
      if (call.c_to_d) {
        call.c_to_d->src = wide[&Gemm::c].data;
        call.c_to_d->dst = call.d;
      }
      for (const auto scale : {&Gemm::descale_a, &Gemm::descale_b}) {
        const std::byte* const value = at[scale].data;
        if (value != nullptr) call.op.alpha *= double{*reinterpret_cast<const float*>(value)};
      }
      call(player);
      widened.store();
    };
  }

  /// Lets the operand be a copy of its elements, which it returns.
  static std::vector<float> rounded_to_tf32(OperandAt& operand, std::uint64_t count) {
    const auto* const values = reinterpret_cast<const float*>(operand.data);
    std::vector<float> copy(values, values + count);
    std::ranges::transform(copy, copy.begin(), program::round_to_tf32);
    operand.data = reinterpret_cast<std::byte*>(copy.data());
    return copy;
  }

  /// In each section, only the first update that uses the same powers advances them.
  host::Call emulated(const program::Update& op) {
    Arguments<program::Update> call = arguments(op);
    const bool advances = op.optimizer == program::Optimizer::adam &&
                          advanced_.insert(call[&program::Update::powers].data).second;
    call.powers = advances ? Powers::advance : Powers::keep;
    return [call](host::Player&) { play_op(call); };
  }

  program::RankProgram stored_program_;
  host::Communicators communicators_;
  std::array<host::Storage, program::space_count> arenas_;
  ArenaPointers addresses_{};
  std::array<host::Storage, program::max_streams> staging_;
  Resolver stored_, wide_;  ///< the second gives layouts only
  std::vector<host::PreparedSection> sections_;
  std::set<const std::byte*> advanced_;  ///< powers that the section advances
  std::vector<timeline::Span> spans_;
  host::StreamThreads player_{1, host::Waiting::blocking};
  SessionFacts facts_;
};

class EmulatingExecutor final : public Executor {
 public:
  EmulatingExecutor() : host_(make_host_executor({})), description_(host_->describe()) {
    using enum program::Precision;
    description_.precisions = {f64, f32, tf32, f16, bf16, fp8};
  }
  [[nodiscard]] const Description& describe() const override { return description_; }
  [[nodiscard]] SessionPtr prepare(const program::ProgramSet& set, const comm::Communicator& point,
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

// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/collectives/collectives.hpp"

#include <stdexcept>

namespace isoscale::workloads::collectives {
namespace {

using program::Direction;
using program::Slice;

constexpr program::StreamId on_stream = 0;

class TextbookWriter {
 public:
  TextbookWriter(program::Builder& builder, const TextbookCall& call)
      : builder_(builder),
        call_(call),
        parts_(call.operation == Operation::reduce_scatter ? call.send : call.receive),
        incoming_{.buffer = call.scratch, .count = parts_.count},
        partial_{.buffer = call.scratch, .offset = parts_.count, .count = parts_.count} {}

  void write() {
    if (call_.members == 1) return copy(call_.send, call_.receive);
    switch (call_.implementation) {
      case Implementation::ring:
        return ring();
      case Implementation::tree:
        return tree();
      case Implementation::recursive_doubling:
        return recursive();
      default:
        throw std::logic_error("the library's collective is no program");
    }
  }

 private:
  // --- the parts into which the data is cut, one for each rank ---

  [[nodiscard]] std::uint64_t begin_of(int part) const {
    return parts_.count * static_cast<std::uint64_t>(part) /
           static_cast<std::uint64_t>(call_.members);
  }
  /// Returns the slice with the parts `first` ... last - 1 of `whole`, a slice that has all parts.
  [[nodiscard]] Slice parts(const Slice& whole, int first, int last) const {
    Slice slice = whole;
    slice.offset += begin_of(first);
    slice.count = begin_of(last) - begin_of(first);
    return slice;
  }
  [[nodiscard]] Slice part(const Slice& whole, int index) const {
    return parts(whole, index, index + 1);
  }
  [[nodiscard]] static Slice front(Slice slice, std::uint64_t count) {
    slice.count = count;
    return slice;
  }
  [[nodiscard]] int wrapped(int place) const {
    return (place % call_.members + call_.members) % call_.members;
  }

  // --- ops that all algorithms emit ---

  void copy(const Slice& from, const Slice& to) {
    builder_.emit(on_stream, program::row_copy(from, to));
  }
  void add(const Slice& a, const Slice& b, const Slice& to) {
    builder_.emit(on_stream, program::row_sum(a, b, to));
  }
  [[nodiscard]] program::Transfer transfer(Direction direction, int offset,
                                           const Slice& slice) const {
    return {.direction = direction, .axis = call_.axis, .offset = offset, .slice = slice};
  }
  void exchange(std::vector<program::Transfer> transfers) {
    builder_.emit(on_stream, program::Exchange{std::move(transfers)});
  }
  void send_and_receive(int to, const Slice& out, int from, const Slice& in) {
    exchange({transfer(Direction::send, to, out), transfer(Direction::receive, from, in)});
  }

  // --- ring algorithms ---

  void ring() {
    if (call_.operation == Operation::all_gather) {
      copy(call_.send, part(call_.receive, call_.me));
      return ring_gather();
    }
    const bool scatters = call_.operation == Operation::reduce_scatter;
    ring_scatter(scatters ? call_.receive : part(call_.receive, call_.me));
    if (!scatters) ring_gather();
  }

  /// Sends partial sums around the ring. Afterwards rank i has the complete sum of part i.
  void ring_scatter(const Slice& result) {
    Slice outgoing = part(call_.send, wrapped(call_.me - 1));
    for (int step = 0; step < call_.members - 1; ++step) {
      const Slice own = part(call_.send, wrapped(call_.me - step - 2));
      const Slice in = front(incoming_, own.count);
      send_and_receive(1, outgoing, -1, in);
      const bool is_last = step == call_.members - 2;
      const Slice sum = is_last ? result : front(partial_, own.count);
      add(in, own, sum);
      outgoing = sum;
    }
  }

  void ring_gather() {
    for (int step = 0; step < call_.members - 1; ++step) {
      send_and_receive(1, part(call_.receive, wrapped(call_.me - step)), -1,
                       part(call_.receive, wrapped(call_.me - step - 1)));
    }
  }

  // --- tree algorithm for all_reduce ---

  void tree() {
    copy(call_.send, call_.receive);
    int span = 1;
    for (; span < call_.members; span *= 2) {
      const int place = call_.me % (2 * span);
      if (place == span) {
        exchange({transfer(Direction::send, -span, call_.receive)});
        break;
      }
      if (place == 0 && call_.me + span < call_.members) {
        exchange({transfer(Direction::receive, span, incoming_)});
        add(call_.receive, incoming_, call_.receive);
      }
    }
    // A rank receives the result from the rank to which it has sent its partial sum, and then sends
    // it to the ranks whose partial sums it has received.
    if (span < call_.members) exchange({transfer(Direction::receive, -span, call_.receive)});
    for (span /= 2; span >= 1; span /= 2) {
      if (call_.me % (2 * span) == 0 && call_.me + span < call_.members) {
        exchange({transfer(Direction::send, span, call_.receive)});
      }
    }
  }

  // --- recursive doubling and halving ---------------------------------------------------------

  void recursive() {
    if (call_.operation == Operation::all_gather) return recursive_gather();
    if (call_.operation == Operation::reduce_scatter) return recursive_scatter();
    copy(call_.send, call_.receive);
    for (int span = 1; span < call_.members; span *= 2) {
      const int offset = (call_.me ^ span) - call_.me;
      send_and_receive(offset, call_.receive, offset, incoming_);
      add(call_.receive, incoming_, call_.receive);
    }
  }

  void recursive_gather() {
    copy(call_.send, part(call_.receive, call_.me));
    for (int span = 1; span < call_.members; span *= 2) {
      const int partner = call_.me ^ span, offset = partner - call_.me;
      const int mine = call_.me / span * span, theirs = partner / span * span;
      send_and_receive(offset, parts(call_.receive, mine, mine + span), offset,
                       parts(call_.receive, theirs, theirs + span));
    }
  }

  void recursive_scatter() {
    Slice sums = call_.send;
    for (int span = call_.members / 2; span >= 1; span /= 2) {
      const int partner = call_.me ^ span, offset = partner - call_.me;
      const int mine = call_.me / span * span, theirs = partner / span * span;
      const Slice kept = parts(sums, mine, mine + span);
      const Slice in = front(incoming_, kept.count);
      send_and_receive(offset, parts(sums, theirs, theirs + span), offset, in);
      add(kept, in, span == 1 ? call_.receive : parts(partial_, mine, mine + span));
      sums = partial_;
    }
  }

  program::Builder& builder_;
  const TextbookCall& call_;
  Slice parts_;     ///< the whole data; only its count is used
  Slice incoming_;  ///< scratch for incoming data
  Slice partial_;   ///< scratch for partial sums to send
};

}  // namespace

void emit_textbook(program::Builder& builder, const TextbookCall& call) {
  TextbookWriter{builder, call}.write();
}

}  // namespace isoscale::workloads::collectives

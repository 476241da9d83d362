// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <cstdio>

#include "comm/communicator.hpp"
#include "comm/message_queue.hpp"
#include "tests/fault/failing_calls.hpp"
#include "tests/unit/matchers.hpp"

/// Every MPI call of comm fails in turn, on all ranks at once. (What becomes of a job in which one
/// rank fails alone is seen where the whole program runs.)
namespace isoscale::comm {
namespace {

using units::Seconds;

void use_communicators(const Communicator& world) {
  const Communicator part = world.split(world.rank() % 2, world.rank());
  const Communicator node = world.split_node();
  static_cast<void>(part.ranks_in(world));
  world.barrier();
  world.quiet_barrier(Seconds{1e-4});
  EXPECT_EQ(world.broadcast(std::string{"text"}), "text");
  EXPECT_EQ(world.all_max(world.rank()), world.size() - 1);
  EXPECT_EQ(world.all_min(world.rank()), 0);
  EXPECT_EQ(world.all_sum(1), world.size());
  std::array values{1.0, 2.0};
  world.all_max(values);
  EXPECT_EQ(world.all_gather(7).size(), static_cast<std::size_t>(world.size()));
  const std::array part_of_rank{std::byte{1}, std::byte{2}};
  static_cast<void>(world.gather(part_of_rank));
  static_cast<void>(world.gather("text"));
  EXPECT_TRUE(all_ok(world, "").ok);
  static_cast<void>(node_of_rank(world));
}

void use_mail(const Communicator& world) {
  static_cast<void>(threads_may_talk());
  static_cast<void>(Environment::library_version());
  MessageQueue mail{world};
  const std::array letter{std::byte{3}};
  mail.post(world.rank(), 1, letter);
  while (!mail.take(1)) {
  }
  mail.post(world.rank(), 1, letter);  // looks whether the first is gone
  while (!mail.take(1)) {
  }
}

/// Returns the message of the call that fails, "" when none does.
std::string said_by(void (*work)(const Communicator&)) {
  try {
    work(Communicator::world());
  } catch (const MpiError& error) {
    return error.what();
  }
  return "";
}

/// Their failing is said on standard error: where they are called nobody can catch anything.
const std::set<std::string> warned_of{"MPI_Comm_free", "MPI_Finalized"};
/// Those that need a partner: where more ranks than one take part, one may wait for the other.
const std::set<std::string> of_pairs{"MPI_Isend", "MPI_Recv", "MPI_Send", "MPI_Ssend", "MPI_Test"};

void fail_each(void (*work)(const Communicator&)) {
  EXPECT_EQ(said_by(work), "");
  fault::count();
  EXPECT_EQ(said_by(work), "");
  fault::stop();
  const Communicator world = Communicator::world();
  int tried = 0;
  for (const auto& [call, count] : fault::calls()) {
    if (!call.starts_with("MPI_") || (world.size() > 1 && of_pairs.contains(call))) continue;
    // Ranks take part in gathering differently, and one that waits calls as often as it likes.
    const auto alike = static_cast<int>(world.all_min(count));
    for (int nth = 1; nth <= std::min(alike, 40); ++nth, ++tried) {
      fault::fail({.call = call, .nth = nth});
      testing::internal::CaptureStderr();
      const std::string said = said_by(work);
      fault::stop();
      const std::string warned = testing::internal::GetCapturedStderr();
      EXPECT_EQ(fault::failed(), 1) << call << ' ' << nth;
      const std::string& where = warned_of.contains(call) ? warned : said;
      EXPECT_NE(where.find("MPI call failed in "), where.npos) << call << ' ' << nth;
      EXPECT_NE(where.find("isoscale::comm::"), where.npos) << call << ' ' << nth << where;
      EXPECT_NE(where.find("MPI_ERR_OTHER"), where.npos) << call << ' ' << nth << where;
    }
  }
  EXPECT_GT(tried, 5);
  if (world.rank() == 0) std::printf("%d calls failed in turn\n", tried);
}

TEST(CommFaults, Communicators) { fail_each(use_communicators); }

TEST(CommFaults, Mail) { fail_each(use_mail); }

TEST(CommFaults, ALetterThatIsNotSent) {
  const Communicator world = Communicator::world();
  fault::fail({.call = "MPI_Isend"});
  const MessageQueue mail{world};
  const std::array letter{std::byte{3}};
  EXPECT_THROW(mail.send(world.rank(), 0, letter, Seconds{1}), MpiError);
  fault::stop();
}

/// A code that MPI has no text for, and an MPI that gives none.
TEST(CommFaults, WithoutReason) {
  fault::fail({.call = "MPI_Error_string"});
  EXPECT_THAT([] { check(MPI_ERR_COUNT); },
              testing::ThrowsMessage<MpiError>(HasSubstr("no reason given")));
  fault::stop();
}

}  // namespace
}  // namespace isoscale::comm

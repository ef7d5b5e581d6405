// EventLog: what went in comes out, in order; a bad disk or file is an error, never a crash.
#include "allocator/observe/event_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "allocator/observe/log_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EventLogTest : public testing::Test {
 protected:
  EventLogTest()
      : path_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + ".log") {}

  void Write(int events) {
    EventLog log;
    ASSERT_TRUE(log.Start(path_).ok());
    for (int i = 0; i < events; ++i) log.Append(MakeEvent(i));
    ASSERT_TRUE(log.Stop().ok());
  }
  static Event MakeEvent(int i) {
    const auto number = static_cast<std::uint64_t>(i);
    return {static_cast<EventKind>(1 + i % 3),
            number * 256,
            number + 7,
            StreamId{number % 5},
            number * 31,
            0};
  }
  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Replace(const std::string& contents) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << contents;
  }

  const std::string path_;
};

TEST_F(EventLogTest, EventsAreReadBackInOrder) {
  constexpr int kEvents = 10'000;  // more than one buffer
  Write(kEvents);
  const auto events = ReadEventLog(path_);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), std::size_t{kEvents});
  std::uint64_t time = 0;
  for (int i = 0; i < kEvents; ++i) {
    const Event& event = (*events)[i];
    const Event expected = MakeEvent(i);
    ASSERT_EQ(event.kind, expected.kind);
    ASSERT_EQ(event.address, expected.address);
    ASSERT_EQ(event.bytes, expected.bytes);
    ASSERT_EQ(event.stream, expected.stream);
    ASSERT_EQ(event.key, expected.key);
    ASSERT_GE(event.time_ns, time) << "time goes backwards";
    time = event.time_ns;
  }
}

TEST_F(EventLogTest, AnEmptyLogIsALog) {
  Write(0);
  EXPECT_TRUE(IsEventLog(path_));
  EXPECT_EQ(ReadEventLog(path_)->size(), 0u);
}

TEST_F(EventLogTest, OnlyItsOwnerMayReadTheFile) {
  Write(1);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(EventLogTest, NothingIsWrittenWhenOff) {
  EventLog log;
  EXPECT_FALSE(log.enabled());
  log.Append(MakeEvent(1));
  EXPECT_EQ(log.Stop().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(log.Start(path_).ok());
  EXPECT_TRUE(log.enabled());
  ASSERT_TRUE(log.Stop().ok());
  log.Append(MakeEvent(2));
  EXPECT_EQ(ReadEventLog(path_)->size(), 0u);
}

TEST_F(EventLogTest, TwoLogsAtOnceAreRefused) {
  EventLog log;
  ASSERT_TRUE(log.Start(path_).ok());
  EXPECT_EQ(log.Start(path_ + "2").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(log.enabled());
}

TEST_F(EventLogTest, ALogThatEndsWithItsOwnerIsComplete) {
  {
    EventLog log;
    ASSERT_TRUE(log.Start(path_).ok());
    for (int i = 0; i < 10; ++i) log.Append(MakeEvent(i));
  }
  EXPECT_EQ(ReadEventLog(path_)->size(), 10u);
}

TEST_F(EventLogTest, EveryLogHasANameOfItsOwn) {
  const std::string process = std::to_string(getpid());
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    EventLog log;
    const std::string folder = testing::TempDir() + "/unique" + std::to_string(i);
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    ASSERT_TRUE(log.Start(folder + "/%p.log").ok());
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename());
    }
  }
  ASSERT_EQ(names.size(), 2u);
  EXPECT_THAT(names[0], testing::StartsWith(process + "."));
  EXPECT_NE(names[0], names[1]);
}

TEST_F(EventLogTest, ABoundEndsTheLogAndLeavesItIncomplete) {
  EventLog log;
  ASSERT_TRUE(log.Start(path_, /*most_events=*/5).ok());
  for (int i = 0; i < 4; ++i) log.Append(MakeEvent(i));
  EXPECT_TRUE(log.enabled());
  for (int i = 4; i < 9; ++i) log.Append(MakeEvent(i));
  EXPECT_FALSE(log.enabled());
  EXPECT_EQ(ReadEventLog(path_)->size(), 5u) << "it is written when the bound is met";
  ASSERT_TRUE(log.Stop().ok());
  EXPECT_FALSE(IsCompleteEventLog(path_));
  Write(5);
  EXPECT_TRUE(IsCompleteEventLog(path_));
  EXPECT_FALSE(IsCompleteEventLog(path_ + ".none"));
}

// In a child each: what it leaves behind when it ends.
TEST_F(EventLogTest, AnExitCompletesTheLogAndAKillLeavesItCut) {
  for (const bool exits : {true, false}) {
    EXPECT_EXIT(
        {
          auto* const log = new EventLog;  // as an arena, which nobody destroys
          if (!log->Start(path_).ok()) _exit(1);
          for (int i = 0; i < 10; ++i) log->Append(MakeEvent(i));
          if (exits) exit(0);
          _exit(0);
        },
        testing::ExitedWithCode(0), "");
    EXPECT_EQ(IsCompleteEventLog(path_), exits);
    EXPECT_EQ(ReadEventLog(path_)->size(), exits ? 10u : 0u);
  }
}

TEST_F(EventLogTest, AForkedChildWritesNothing) {
  EventLog log;
  ASSERT_TRUE(log.Start(path_).ok());
  log.Append(MakeEvent(1));
  EXPECT_EXIT(
      {
        for (int i = 0; i < 10'000; ++i) log.Append(MakeEvent(i));
        exit(0);
      },
      testing::ExitedWithCode(0), "");
  ASSERT_TRUE(log.Stop().ok());
  EXPECT_EQ(ReadEventLog(path_)->size(), 1u);
}

TEST_F(EventLogTest, AFullDiskEndsTheLogAndIsReported) {
  EventLog log;
  absl::Status status = log.Start("/dev/full");
  if (status.ok()) {
    for (int i = 0; i < 10'000; ++i) log.Append(MakeEvent(i));
    EXPECT_FALSE(log.enabled());
    status = log.Stop();
  }
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(MessageOf(status), HasSubstr("No space left"));
  EXPECT_TRUE(log.Start(path_).ok()) << "the next log is not the last one's fault";
}

TEST_F(EventLogTest, APathThatCannotBeOpenedIsNamed) {
  EventLog log;
  const absl::Status status = log.Start("/no/such/folder/x");
  EXPECT_THAT(MessageOf(status), HasSubstr("'/no/such/folder/x'"));
  EXPECT_FALSE(log.enabled());
}

TEST_F(EventLogTest, ATruncatedLogGivesTheRecordsBefore) {
  Write(20);
  const std::string whole = Contents();
  for (std::size_t cut = 1; cut <= 60; ++cut) {
    Replace(whole.substr(0, whole.size() - cut));
    const auto events = ReadEventLog(path_);
    ASSERT_TRUE(events.ok()) << events.status();
    ASSERT_EQ(events->size(), 20u - (cut + 47) / 48) << "cut off: " << cut;
  }
}

TEST_F(EventLogTest, ForeignAndDamagedFilesAreRefusedWithTheReason) {
  Write(3);
  const std::string whole = Contents();
  const auto error_of = [&](const std::string& contents) {
    Replace(contents);
    const auto events = ReadEventLog(path_);
    EXPECT_FALSE(events.ok());
    EXPECT_THAT(MessageOf(events.status()), HasSubstr(path_));
    return MessageOf(events.status());
  };
  EXPECT_THAT(error_of(""), HasSubstr("not an event log"));
  EXPECT_THAT(error_of("A 1 4096\n"), HasSubstr("not an event log"));
  EXPECT_THAT(error_of(whole.substr(0, 12)), HasSubstr("not an event log"));
  std::string other_version = whole;
  other_version[8] = 9;
  EXPECT_THAT(error_of(other_version),
              AllOf(HasSubstr("version 9"), HasSubstr("reads versions 1 to 2")));
  std::string damaged = whole;
  damaged[16 + 48] = 77;
  EXPECT_THAT(error_of(damaged), HasSubstr("record 1 has kind 77"));
  EXPECT_EQ(ReadEventLog(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EventLogTest, ADamagedLogGivesWhatComesBeforeTheDamage) {
  Write(5);
  std::string damaged = Contents();
  damaged[16 + 3 * 48] = 77;
  Replace(damaged);
  const auto log = ReadLog(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->events.size(), 3u);
  EXPECT_EQ(log->damage, "record 3 has kind 77");
  EXPECT_FALSE(log->complete) << "whatever its header says";
}

TEST_F(EventLogTest, TextsComeBackWhole) {
  const std::string long_name(199, 'n');
  const std::string explanation(1000, 'e');
  {
    EventLog log;
    ASSERT_TRUE(log.Start(path_).ok());
    log.AppendText({EventKind::kName, 0, 0, StreamId{}, 5, 0}, "first");
    log.AppendText({EventKind::kName, 0, 0, StreamId{}, 7, 0}, long_name);
    log.Append(MakeEvent(0));
    log.AppendText({EventKind::kOom, 0, 4096, StreamId{}, 7, 0}, explanation);
    log.AppendText({EventKind::kName, 0, 0, StreamId{}, 5, 0}, "again");
    log.AppendText({EventKind::kOom, 0, 1, StreamId{}, 0, 0}, "");
    ASSERT_TRUE(log.Stop().ok());
  }
  const auto log = ReadLog(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->damage, "");
  EXPECT_TRUE(log->complete);
  EXPECT_EQ(log->names.size(), 2u);
  EXPECT_EQ(log->names.at(5), "again") << "the last one counts";
  EXPECT_EQ(log->names.at(7), long_name);
  ASSERT_EQ(log->texts.size(), 2u);
  EXPECT_EQ(log->texts[0], explanation);
  EXPECT_EQ(log->texts[1], "");
  ASSERT_EQ(log->events.size(), 3u) << "names are no events";
  EXPECT_EQ(log->events[1].kind, EventKind::kOom);
  EXPECT_EQ(log->events[1].bytes, 4096u);
  EXPECT_GT(log->events[1].time_ns, 0u);
  EXPECT_EQ(log->records, 6u + 1 + 5 + 25 + 1);
}

TEST_F(EventLogTest, ATextThatIsCutOffGivesItsBeginning) {
  {
    EventLog log;
    ASSERT_TRUE(log.Start(path_, /*most_events=*/3).ok());
    log.AppendText({EventKind::kName, 0, 0, StreamId{}, 5, 0}, std::string(100, 'x'));
    EXPECT_FALSE(log.enabled());
  }
  const auto log = ReadLog(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->names.at(5), std::string(80, 'x'));
  EXPECT_FALSE(log->complete);
}

TEST_F(EventLogTest, ATextWithoutAnOwnerIsDamage) {
  Write(2);
  std::string damaged = Contents();
  damaged[16] = static_cast<char>(EventKind::kText);
  Replace(damaged);
  EXPECT_THAT(ReadLog(path_)->damage, HasSubstr("belongs to nothing"));
  damaged[16] = static_cast<char>(EventKind::kName);
  damaged[16 + 3 * 8 + 7] = 1;  // a length of 2^56
  Replace(damaged);
  EXPECT_THAT(ReadLog(path_)->damage, HasSubstr("a text of 72057594037927936 bytes"));
}

TEST_F(EventLogTest, LogsOfVersionOneAreRead) {
  Write(3);
  std::string old = Contents();
  old[8] = 1;
  Replace(old);
  const auto log = ReadLog(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->version, 1u);
  EXPECT_EQ(log->events.size(), 3u);
  EXPECT_TRUE(log->complete);
  old[16 + 48] = static_cast<char>(EventKind::kLimit);  // which it did not have
  Replace(old);
  EXPECT_EQ(ReadLog(path_)->damage, "record 1 has kind 10");
}

TEST_F(EventLogTest, ThreadsMayWriteAtOnce) {
  EventLog log;
  ASSERT_TRUE(log.Start(path_).ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 5'000; ++j) log.Append(MakeEvent(j));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(log.Stop().ok());
  EXPECT_EQ(ReadEventLog(path_)->size(), 20'000u);
}

}  // namespace
}  // namespace thimble

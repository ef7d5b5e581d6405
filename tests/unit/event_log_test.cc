// EventLog: what went in comes out, in order; a bad disk or file is an error, never a crash.
#include "allocator/observe/event_log.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/observe/log_format.h"
#include "allocator/offline/logs/log_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/device.h"

namespace thimble {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EventLogTest : public testing::Test {
 protected:
  static constexpr std::size_t kHeader = sizeof(log_format::Header);

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
  // The log as an older Thimble would have written it: a short header, and no checks.
  std::string OldContents(char version) const {
    std::string old = Contents();
    old.erase(16, kHeader - 16);
    old[8] = version;
    for (std::size_t at = 16; at < old.size(); at += 48) old.replace(at + 4, 4, 4, '\0');
    return old;
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
      if (entry.path().extension() == ".log") names.push_back(entry.path().filename());
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
  EXPECT_EQ(ReadLog(path_)->events.size(), 5u) << "it is written when the bound is met";
  EXPECT_THAT(ReadLog(path_)->note, HasSubstr("the bound that log_events sets"));
  ASSERT_TRUE(log.Stop().ok());
  EXPECT_FALSE(ReadLog(path_)->complete);
  EXPECT_EQ(ReadLog(path_)->note,
            "the log is incomplete: the first 5 events, the bound that log_events sets");
  Write(5);
  EXPECT_TRUE(ReadLog(path_)->complete);
  EXPECT_EQ(ReadLog(path_)->note, "");
}

// Runs each case in a child and checks what it leaves behind.
TEST_F(EventLogTest, AnExitCompletesTheLogAndAKillLosesNoEvent) {
  for (const int events : {0, 10, 4095, 4096, 4097, 9000}) {
    for (const bool exits : {true, false}) {
      EXPECT_EXIT(
          {
            auto* const log = new EventLog;  // like an arena, which is never destroyed
            if (!log->Start(path_).ok()) _exit(1);
            for (int i = 0; i < events; ++i) log->Append(MakeEvent(i));
            if (exits) exit(0);
            raise(SIGKILL);
          },
          [exits](int status) {
            return exits ? testing::ExitedWithCode(0)(status)
                         : testing::KilledBySignal(SIGKILL)(status);
          },
          "");
      const auto log = ReadLog(path_);
      ASSERT_EQ(log->events.size(), static_cast<std::size_t>(events));
      for (int i = 0; i < events; ++i) ASSERT_EQ(log->events[i].key, MakeEvent(i).key);
      EXPECT_EQ(log->complete, exits);
      EXPECT_EQ(std::filesystem::exists(path_ + ".tail"), !exits);
      if (!exits) {
        EXPECT_THAT(log->note, HasSubstr(absl::StrCat("it has ", events, " events so far")));
      }
      EXPECT_THAT(log->note, testing::Not(HasSubstr("missing")));
    }
  }
}

TEST_F(EventLogTest, ALogThatIsBeingWrittenIsReadToItsLastEvent) {
  EventLog log;
  ASSERT_TRUE(log.Start(path_).ok());
  for (int i = 0; i < 5000; ++i) {
    log.Append(MakeEvent(i));
    if (i % 977 != 0) continue;
    ASSERT_EQ(ReadLog(path_)->records, static_cast<std::uint64_t>(i) + 1);
  }
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (int i = 5000; i < 200'000; ++i) log.Append(MakeEvent(i));
    is_over = true;
  });
  std::uint64_t before = 5000;
  while (!is_over) {
    const auto read = ReadLog(path_);
    EXPECT_EQ(read->damage, "");
    EXPECT_GE(read->records, before);
    before = read->records;
  }
  writer.join();
  EXPECT_EQ(ReadLog(path_)->records, 200'000u);
}

TEST_F(EventLogTest, TheTailOfAnotherLogIsNotRead) {
  EXPECT_EXIT(
      {
        auto* const log = new EventLog;
        if (!log->Start(path_).ok()) _exit(1);
        for (int i = 0; i < 10; ++i) log->Append(MakeEvent(i));
        raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  const std::string other = path_ + ".other";
  ASSERT_EQ(rename((path_ + ".tail").c_str(), (other + ".tail").c_str()), 0);
  EXPECT_EQ(ReadLog(path_)->records, 0u);
  EXPECT_THAT(ReadLog(path_)->note, HasSubstr("up to 4096 newer ones are missing"));
  EXPECT_EXIT(
      {
        auto* const log = new EventLog;
        if (!log->Start(other).ok() || !log->Start(other).ok()) _exit(0);
        _exit(1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(ReadLog(other)->records, 0u) << "the old tail is gone";
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

TEST_F(EventLogTest, AFullDiskAtTheStartIsReported) {
  EventLog log;
  const absl::Status status = log.Start("/dev/full");
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("'/dev/full'"), HasSubstr("No space left")));
  EXPECT_FALSE(log.enabled());
  EXPECT_TRUE(log.Start(path_).ok()) << "the next log is not the last one's fault";
}

// The file may not grow beyond a bound, as on a disk that fills up.
TEST_F(EventLogTest, AFileThatCannotGrowEndsTheLogWithOneLineAndLosesNothing) {
  constexpr int kEvents = 20'000;
  constexpr rlim_t kMost = 500'000;  // bytes: beyond the second buffer, within the third
  EXPECT_EXIT(
      {
        signal(SIGXFSZ, SIG_IGN);
        auto* const log = new EventLog;
        rlimit most;
        most.rlim_cur = most.rlim_max = kMost;
        if (!log->Start(path_).ok() || setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(1);
        for (int i = 0; i < kEvents; ++i) log->Append(MakeEvent(i));
        if (log->enabled() || log->Stop().ok()) _exit(2);
        exit(0);
      },
      testing::ExitedWithCode(0),
      "^thimble: the event log '[^']*' could not be written: File too large. It ends here; the "
      "program goes on without it.\n$");
  const auto log = ReadLog(path_);
  EXPECT_EQ(log->records, 3 * 4096u) << "what is not in the log is in its tail";
  EXPECT_EQ(log->damage, "");
  EXPECT_FALSE(log->complete);
  EXPECT_THAT(log->note, HasSubstr("could not be written after 12288 events"));
}

TEST_F(EventLogTest, APathThatCannotBeOpenedIsNamed) {
  EventLog log;
  const absl::Status status = log.Start("/no/such/folder/x");
  EXPECT_THAT(MessageOf(status), HasSubstr("'/no/such/folder/x'"));
  EXPECT_FALSE(log.enabled());
}

TEST_F(EventLogTest, ATruncatedLogGivesTheRecordsBeforeAndSaysSo) {
  Write(20);
  const std::string whole = Contents();
  for (std::size_t cut = 1; cut <= 60; ++cut) {
    Replace(whole.substr(0, whole.size() - cut));
    const auto log = ReadLog(path_);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_EQ(log->events.size(), 20u - (cut + 47) / 48) << "cut off: " << cut;
    ASSERT_FALSE(log->complete);
    ASSERT_THAT(log->note, HasSubstr(absl::StrCat(log->records, " of 20 events")));
  }
}

TEST_F(EventLogTest, NoByteOfARecordCanChangeUnnoticed) {
  Write(20);
  const std::string whole = Contents();
  for (std::size_t at = kHeader; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    Replace(damaged);
    const auto log = ReadLog(path_);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_EQ(log->records, (at - kHeader) / 48) << "byte " << at;
    ASSERT_FALSE(log->complete);
    ASSERT_THAT(log->note, HasSubstr("damaged"));
  }
}

TEST_F(EventLogTest, ALostBlockIsNoticed) {
  Write(20);
  std::string damaged = Contents();
  damaged.erase(kHeader + 5 * 48, 3 * 48);
  Replace(damaged);
  EXPECT_EQ(ReadLog(path_)->records, 5u);
  EXPECT_EQ(ReadLog(path_)->damage, "record 5 has a wrong checksum");
}

// They have no checks, but impossible contents are found nevertheless.
TEST_F(EventLogTest, AnOldLogWithMoreInUseThanThereIsIsDamaged) {
  const auto record = [](EventKind kind, std::uint64_t address, std::uint64_t bytes) {
    const log_format::Record made = {static_cast<std::uint32_t>(kind), 0, address, bytes, 0, 0, 0};
    return std::string(reinterpret_cast<const char*>(&made), sizeof(made));
  };
  Write(0);
  std::string old = Contents().substr(0, 16);
  old[8] = 2;
  old += record(EventKind::kMemory, 0, 4096) + record(EventKind::kAllocate, 256, 4000) +
         record(EventKind::kFree, 256, 0) + record(EventKind::kAllocate, 256, 4096);
  Replace(old);
  EXPECT_TRUE(ReadLog(path_)->complete);
  Replace(old + record(EventKind::kAllocate, 8192, 1));
  EXPECT_EQ(ReadLog(path_)->damage, "record 4 has more in use than is reserved");
  EXPECT_EQ(ReadLog(path_)->events.size(), 4u);
  Replace(old + record(EventKind::kEvict, 256, 4096) + record(EventKind::kAllocate, 8192, 1));
  EXPECT_TRUE(ReadLog(path_)->complete) << "what left the device does not need memory there";
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
  EXPECT_THAT(error_of(whole.substr(0, 20)), HasSubstr("cut off within the header"));
  std::string other_version = whole;
  other_version[8] = 9;
  EXPECT_THAT(error_of(other_version),
              AllOf(HasSubstr("version 9"), HasSubstr("reads versions 1 to 3")));
  std::string damaged = whole;
  damaged[kHeader + 48] = 77;
  EXPECT_THAT(error_of(damaged),
              HasSubstr("damaged: record 1 has a wrong checksum; the 1 events before it are"));
  EXPECT_EQ(ReadEventLog(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EventLogTest, ADamagedLogGivesWhatComesBeforeTheDamage) {
  Write(5);
  std::string damaged = Contents();
  damaged[kHeader + 3 * 48] = 77;
  Replace(damaged);
  const auto log = ReadLog(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->events.size(), 3u);
  EXPECT_EQ(log->damage, "record 3 has a wrong checksum");
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
  std::string damaged = OldContents(2);
  damaged[16] = static_cast<char>(EventKind::kText);
  Replace(damaged);
  EXPECT_THAT(ReadLog(path_)->damage, HasSubstr("is a text without an event"));
  damaged[16] = static_cast<char>(EventKind::kName);
  damaged[16 + 3 * 8 + 7] = 1;  // a length of 2^56
  Replace(damaged);
  EXPECT_THAT(ReadLog(path_)->damage, HasSubstr("a text of 72057594037927936 bytes"));
}

TEST_F(EventLogTest, LogsOfOldVersionsAreRead) {
  for (const char version : {1, 2}) {
    Write(3);
    std::string old = OldContents(version);
    Replace(old);
    const auto log = ReadLog(path_);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(log->version, static_cast<std::uint32_t>(version));
    EXPECT_EQ(log->events.size(), 3u);
    EXPECT_TRUE(log->complete);
    old[12 + 2] = 0;  // as after a kill
    Replace(old);
    EXPECT_THAT(ReadLog(path_)->note, HasSubstr("up to 4096 newer ones are missing"));
    old[16 + 48] = static_cast<char>(EventKind::kLimit);  // which version 1 did not have
    Replace(old);
    EXPECT_EQ(ReadLog(path_)->damage, version == 1 ? "record 1 has kind 10" : "");
    old[16 + 48 + 4] = 1;  // which had no checks
    Replace(old);
    EXPECT_EQ(ReadLog(path_)->damage, "record 1 has a wrong checksum");
  }
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

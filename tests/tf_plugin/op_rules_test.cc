// Which rule counts for an op, by its type alone.
#include "tf_plugin/op_rules.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thimble::tf {
namespace {

TEST(OpRules, WhatIsNotNamedUsesItsTensors) {
  for (const char* type : {"MatMul", "Conv2D", "", "AssignAddVariableOp", "TensorListStack",
                           "ResourceApplyAdam", "Squeezes", "Retval", "__inference_step_42"}) {
    EXPECT_EQ(RuleOf(type), OpRule::kUses) << type;
  }
}

TEST(OpRules, WhatMovesNoByteForwards) {
  for (const char* type :
       {"Reshape", "Identity", "Const", "Merge", "While", "TensorListPushBack"}) {
    EXPECT_EQ(RuleOf(type), OpRule::kForwards) << type;
  }
  EXPECT_EQ(RuleOf("StatefulPartitionedCall"), OpRule::kCalls);
}

TEST(OpRules, WhatOthersMayHoldIsExposed) {
  for (const char* type :
       {"_Arg", "PyFunc", "PyFuncStateless", "EagerPyFunc", "_HostSend", "CollectiveReduceV2",
        "NcclAllReduce", "IteratorGetNext", "MakeIterator", "MapDataset", "BatchDatasetV2",
        "DatasetToSingleElement", "OptionalGetValue", "Stage", "MapUnstageNoKey"}) {
    EXPECT_EQ(RuleOf(type), OpRule::kExposes) << type;
  }
  for (const char* type : {"XlaLaunch", "XlaLaunchV2", "_XlaRun", "_XlaCompile"}) {
    EXPECT_EQ(RuleOf(type), OpRule::kExposesVariables) << type;
  }
}

TEST(OpRules, VariablesAndResultsHaveRulesOfTheirOwn) {
  EXPECT_EQ(RuleOf("ReadVariableOp"), OpRule::kReadsVariable);
  EXPECT_EQ(RuleOf("AssignVariableOp"), OpRule::kAssignsVariable);
  EXPECT_EQ(RuleOf("VariableV2"), OpRule::kMakesReference);
  EXPECT_EQ(RuleOf("_Retval"), OpRule::kReturns);
}

// More types than the table of known ones has places, from several threads.
TEST(OpRules, AreTheSameHoweverManyTypesThereAre) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int i = 0; i < 20000; ++i) {
        ASSERT_EQ(RuleOf("Custom" + std::to_string(i)), OpRule::kUses);
        ASSERT_EQ(RuleOf("Xla" + std::to_string(i)), OpRule::kExposesVariables);
        ASSERT_EQ(RuleOf("Reshape"), OpRule::kForwards);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace thimble::tf
